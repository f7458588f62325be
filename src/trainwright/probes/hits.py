"""How many of a loss call's answers are right: one for each row, each position of a row, or each of its labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainwright.stages.loss import CLASS_LOSSES
from trainwright.stages.overfit import Hits

_LOGITS, _BITS = "binary_cross_entropy_with_logits", "binary_cross_entropy"


def hits_of_classes(predictions: Sequence[int], labels: Sequence[int]) -> Hits | None:
    """Of predicted and true classes; None if there are none."""
    if not labels or len(predictions) != len(labels):
        return None
    return _of_classes(np.asarray(predictions), np.asarray(labels))


def hits_of_call(
    function: str, scores: np.ndarray, targets: np.ndarray, *, class_axis: int = 1, ignored: float = -100
) -> Hits | None:
    """Of a loss call's scores and targets; None if they are no classes and no labels of yes or no.

    Args:
        class_axis: the scores' class axis.
        ignored: the class number that the loss leaves out.
    """
    if function in CLASS_LOSSES and scores.ndim > 1 and targets.dtype.kind in "iu":
        rows = np.moveaxis(scores, class_axis, -1)
        if rows.shape[:-1] != targets.shape or rows.shape[-1] < 2:
            return None
        live = targets != ignored
        return _of_classes(rows.argmax(-1)[live], targets[live]) if bool(live.any()) else None
    if function not in (_LOGITS, _BITS) or scores.shape != targets.shape or scores.ndim != 2 or not scores.size:
        return None
    if not bool(((targets == 0) | (targets == 1)).all()):
        return None
    right = (scores > (0.0 if function == _LOGITS else 0.5)) == (targets > 0)
    ones = (targets > 0).sum(0)
    by_constant = int(np.maximum(ones, len(targets) - ones).sum())
    return Hits(right=int(right.sum()), answers=right.size, by_constant=by_constant, of_labels=scores.shape[1] > 1)


def all_hits(of_batches: Sequence[Hits | None]) -> Hits | None:
    """Of several batches together; None if it is not known of all."""
    known = [hits for hits in of_batches if hits is not None]
    if not known or len(known) < len(of_batches):
        return None
    return Hits(
        right=sum(h.right for h in known),
        answers=sum(h.answers for h in known),
        by_constant=sum(h.by_constant for h in known),
        of_labels=known[0].of_labels,
    )


def _of_classes(predicted: np.ndarray, true: np.ndarray) -> Hits:
    _, counts = np.unique(true, return_counts=True)
    return Hits(right=int((predicted == true).sum()), answers=true.size, by_constant=int(counts.max()))
