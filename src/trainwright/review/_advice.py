"""What to look at where nothing was learned, by what was measured of the run."""

from __future__ import annotations

import numpy as np

from trainwright.core.thresholds import DOMINATES, OUTWEIGHS
from trainwright.rehearsal.record import Kind, Record
from trainwright.review._learner import simple_scores
from trainwright.review._rows import Rows

# Of so many updates. A ratio that stays the same to this share, but for doublings and halvings, is a factor, as of loss
# scaling.
FEWEST_CALLS, SAME_RATIO = 8, 1e-3
# A simple learner gains nothing below this, over the constant answer.
GAIN = 0.05


def advice(record: Record, rows: Rows, *, is_learnable: bool) -> str:
    """The first of what can explain it that was measured; otherwise where to look.

    Args:
        is_learnable: whether a simple learner is clearly better on the same rows.
    """
    same = "it gives one answer for all rows; " if _is_constant(rows) else ""
    if outweighed := _outweighed(record):
        return f"{outweighed}: weight what else is added to it, or take its mean instead of its sum"
    if dominant := _dominant(rows):
        return f"{same}{dominant}: weight the classes in the loss, or draw the rare ones more often"
    if is_learnable:
        return (
            f"{same}the inputs do tell the labels: look at the rate, the decay, what else is in the loss, frozen or detached "
            "parts, masks, and whether other weights are evaluated"
        )
    if _is_untold(record, rows):
        return (
            "a simple learner on what the model receives is no better: the labels may be random or unrelated to these inputs, "
            "or what tells them is lost before the model; look at ten rows as it receives them, with their labels"
        )
    return f"{same}find what keeps inputs, labels and weights apart: a mask, wrong rows, a detached part, other weights"


def _is_constant(rows: Rows) -> bool:
    return rows.guesses is not None and len(np.unique(rows.guesses)) == 1 and len(np.unique(rows.labels)) > 1


def _dominant(rows: Rows) -> str:
    """The class that most labels of training are, in words; empty: there is none."""
    counts = rows.trained.classes if rows.trained is not None and rows.output.kind == Kind.CLASSES else {}
    total = sum(counts.values())
    if len(counts) < 2 or max(counts.values()) < DOMINATES * total:
        return ""
    largest = max(counts, key=lambda one: counts[one])
    return f"{counts[largest] / total:.1%} of the labels that were trained on are class {largest}"


def _outweighed(record: Record) -> str:
    """That the loss of the labels is nothing beside what is minimized; empty: it is not."""
    if record.is_scaled:  # the totals are not in the unit of the losses
        return ""
    minimised = dict(record.losses)
    calls = [one for one in record.answers if one.trains and one.loss and one.loss > 0 and one.update in minimised]
    if len(calls) < FEWEST_CALLS:
        return ""
    totals, own = np.array([minimised[one.update] for one in calls]), np.array([one.loss for one in calls])
    ratios = np.abs(totals) / own
    if not np.isfinite(ratios).all() or ratios.min() < OUTWEIGHS:
        return ""
    doublings = np.log2(ratios / ratios[0])
    if np.abs(doublings - np.round(doublings)).max() < SAME_RATIO:
        return ""
    return f"the loss that is minimized is {np.median(totals):,.4g}, that of the labels only {np.median(own):.4g}"


def _is_untold(record: Record, rows: Rows) -> bool:
    """Whether a simple learner was tried on the same rows, and learned no more than a constant answer has."""
    tried = simple_scores(record, rows)
    constants = {one.name: one.constant for one in rows.scores}
    return bool(tried) and all(value < constants.get(name, 0.0) + GAIN for name, value in tried.items())
