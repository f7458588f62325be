"""Whether a loss compares each output with the targets of all rows, judged from its values for other targets."""

from __future__ import annotations

import numpy as np

# A mean over the same pairs in another order differs only by rounding.
SAME_WITHIN = 1e-5
# If the shape matters, another shape changes an untrained model's loss by at least a few hundredths.
OTHER_WITHIN = 1e-3


def crosses_rows(now: float, exchanged: float, in_shape: float, in_shape_exchanged: float) -> bool:
    """Whether permuting the targets between rows has no effect, but would have one if they had the outputs' shape.

    Args:
        now: the loss of a batch.
        exchanged: the loss with permuted targets.
        in_shape: the loss with the targets in the outputs' shape.
        in_shape_exchanged: the loss with both.
    """
    if not np.isfinite([now, exchanged, in_shape, in_shape_exchanged]).all():
        return False
    if _differ(now, exchanged) > SAME_WITHIN:
        return False
    return min(_differ(now, in_shape), _differ(in_shape, in_shape_exchanged)) > OTHER_WITHIN


def is_of_all_pairs(together: float, pairs: np.ndarray) -> bool:
    """Whether the loss of a few rows is the mean over all pairs of an output and a target, not over the rows.

    Args:
        together: the loss of the rows together.
        pairs: (outputs, targets), the loss of each single pair.
    """
    if not np.isfinite([together, *pairs.ravel()]).all():
        return False
    if _differ(together, float(pairs.diagonal().mean())) <= OTHER_WITHIN:
        return False
    return _differ(together, float(pairs.mean())) <= SAME_WITHIN


def _differ(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1e-12)
