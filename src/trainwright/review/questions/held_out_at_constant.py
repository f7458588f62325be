"""TW1013 held-out-at-constant: the whole run leaves the model's answers no better than a constant one.

Why it matters: The model has learned nothing that its labels tell; no error says so.
Evidence: The answers and labels of the last evaluation (of training, if no evaluation was seen), beside the constant answer of
the training labels, by each measure that the labels allow. A simple learner's score on the same rows says whether they can
be learned.
Fix (manual): What can explain it is named, if it was measured: another term that outweighs the loss of the labels, one class
that most labels are, inputs that tell nothing. Else find what keeps inputs, labels and weights apart: an inverted mask, wrong
rows, a detached part, wrong weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.core.thresholds import DOMINATES, OUTWEIGHS
from trainwright.rehearsal.record import LabelKind, Record
from trainwright.review.learner import better_learner, simple_scores
from trainwright.review.parts import rows_at_constant
from trainwright.review.rows import AnsweredRows, tell_updates, trained_rows

# Standard errors below a constant answer.
BELOW = -4.0
# Of so many updates. A ratio that stays the same to this share, but for doublings and halvings, is a factor, as of loss
# scaling.
FEWEST_CALLS, SAME_RATIO = 8, 1e-3
# A simple learner gains nothing below this, over the constant answer.
GAIN = 0.05


@rule("TW1013", Severity.WARNING)
def held_out_at_constant(record: Record) -> Iterator[Finding]:
    """Rows on which no measure sees a gain."""
    rows = rows_at_constant(record)
    if rows is None:
        return
    learner = better_learner(record, rows)
    yield Finding(
        message=f"after {tell_updates(record)} {rows.told}: no measure sees a gain"
        + ("" if rows.is_held_out else "; no held-out labels were seen beside answers")
        + (f"; {learner.told}" if learner is not None else _numbered(record, rows)),
        measured={
            "rows": len(rows.labels),
            "score": rows.best.value,
            "constant": rows.best.constant,
            "standard_errors": round(rows.best.errors, 1),
            **({"simple_learner": learner.value} if learner is not None else {}),
        },
        where=rows.where,
        proof=Proof(
            f"the model's answers for {rows.named} and their labels: "
            + ", ".join(f"{one.name} {one.value:.3g} against {one.constant:.3g}" for one in rows.scores)
        ),
        fix=Fix(does=_advice(record, rows, is_learnable=learner is not None)),
    )


def _numbered(record: Record, rows: AnsweredRows) -> str:
    """What is far below a constant answer, though training rows are right, was learned under other numbers."""
    score, trained = rows.score("accuracy"), _find_learned(record, rows)
    if trained is None or score is None or score.errors > BELOW:
        return ""
    return f"; {trained.told}: are the classes of both sets numbered alike?"


def _find_learned(record: Record, rows: AnsweredRows) -> AnsweredRows | None:
    """The training rows of the same output, if they were learned, beside held-out rows."""
    found = (one for one in trained_rows(record) if one.output == rows.output and one.learned)
    return next(found, None) if rows.is_held_out else None


def _advice(record: Record, rows: AnsweredRows, *, is_learnable: bool) -> str:
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
            f"{same}the inputs do tell the labels: look whether {record.updates:,} updates are enough, at the rate, the decay, "
            "what else is in the loss, frozen or detached parts, masks, and whether other weights are evaluated"
        )
    if _is_untold(record, rows):
        return (
            "a simple learner on what the model receives is no better: the labels may be random or unrelated to these inputs, "
            "or what tells them is lost before the model; look at ten rows as it receives them, with their labels"
        )
    if (trained := _find_learned(record, rows)) is not None:
        return (
            f"{trained.told}: look whether the evaluation rows are made as these were (codes, scale, order of columns, rows and "
            "labels), and whether these were learned by heart"
        )
    return f"{same}find what keeps inputs, labels and weights apart: a mask, wrong rows, a detached part, other weights"


def _is_constant(rows: AnsweredRows) -> bool:
    return rows.guesses is not None and len(np.unique(rows.guesses)) == 1 and len(np.unique(rows.labels)) > 1


def _dominant(rows: AnsweredRows) -> str:
    """The class that most labels of training are, in words; empty: there is none."""
    counts = rows.trained.classes if rows.trained is not None and rows.output.kind == LabelKind.CLASSES else {}
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


def _is_untold(record: Record, rows: AnsweredRows) -> bool:
    """Whether a simple learner was tried on the same rows, and learned no more than a constant answer has."""
    tried = simple_scores(record, rows)
    constants = {one.name: one.constant for one in rows.scores}
    return bool(tried) and all(value < constants.get(name, 0.0) + GAIN for name, value in tried.items())
