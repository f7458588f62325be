"""What the numbers in a loss call show, in any framework, under the names that the rules use for losses;
and whether its values show that each output is compared with the targets of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainwright.stages import CLASS_LOSSES, LossCall

# Distinct values are searched among this many targets.
_SEARCHED = 100_000
_MOST_DISTINCT = 32
# The sum of a row of float32 probabilities over a vocabulary of 100,000 is within this of one.
SUM_WITHIN = 1e-3
# Probabilities are clipped to this distance from 0 and 1 before taking the logarithm, as in Keras.
_CLIPPED = 1e-7

# The ends of activations' ranges; None: unbounded.
_BOUNDS = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "softmax": (0.0, 1.0), "relu": (0.0, None), "relu6": (0.0, 6.0)}
# A mean over the same pairs in another order differs only by rounding.
_SAME_WITHIN = 1e-5
# If the shape matters, another shape changes an untrained model's loss by at least a few hundredths.
_OTHER_WITHIN = 1e-3


def main_call(calls: Sequence[LossCall]) -> LossCall | None:
    """The call that raised, or else the last classification in the minimized loss, or else the last call."""
    failed = [c for c in calls if c.failure]
    live = [c for c in calls if c.factor] or list(calls)
    classing = [c for c in live if c.function in CLASS_LOSSES]
    return next(iter([*failed[-1:], *classing[-1:], *live[-1:]]), None)


def class_count(call: LossCall | None, class_axis: int) -> int | None:
    """Number of scores per label in a classification; None for other losses."""
    if call is None or call.function not in CLASS_LOSSES or len(call.inputs.shape) < 2:
        return None
    return call.inputs.shape[class_axis]


def common_facts(calls: Sequence[LossCall], class_axis: int) -> dict[str, Any]:
    """The fields of LossFacts that follow from a step's calls alone."""
    call = main_call(calls)
    classes = class_count(call, class_axis)
    chance = chance_of(classes)
    return {
        "function": call.function if call else "",
        "call": call,
        "calls": tuple(calls),
        "classes": classes,
        "chance_nats": chance,
        "chance_of_sum": chance_of_sum(calls, class_axis),
        "expected": uninformed_loss(call, chance),
    }


def unreachable_share(activation: str, targets: np.ndarray) -> float | None:
    """The fraction of the targets' variance outside an activation's range; None for class indices."""
    if activation not in _BOUNDS or targets.dtype.kind != "f" or not targets.size:
        return None
    missed = np.square(targets - np.clip(targets, *_BOUNDS[activation])).mean()
    return float(missed / max(float(targets.var()), 1e-12))


def chance_of(classes: int | None) -> float | None:
    """ln(classes): the cross-entropy, in nats, of a guess."""
    return math.log(classes) if classes and classes > 1 else None


def chance_of_sum(calls: Sequence[LossCall], class_axis: int) -> float | None:
    """The loss of guesses by several heads over classes, each times its factor; None if there is one, or none."""
    live = [c for c in calls if c.factor] or [c for c in calls if c.factor is None]
    heads = [(c.factor, chance_of(class_count(c, class_axis))) for c in live]
    known = [abs(1.0 if factor is None else factor) * chance for factor, chance in heads if chance is not None]
    return sum(known) if len(known) > 1 else None


def uninformed_loss(call: LossCall | None, chance: float | None) -> float | None:
    """The loss of an uninformed model: uniform scores, or zero for every target. None if the loss is not a mean."""
    if call is None or call.options.get("reduction", "mean") != "mean":
        return None
    if chance is not None:
        return chance
    if call.options.get("has_weight"):
        return None
    if call.function.startswith("binary_cross_entropy"):
        return math.log(2)
    if call.function == "mse_loss" and call.targets.deviation is not None:
        return call.targets.deviation**2 + (call.targets.mean or 0.0) ** 2
    return None


def targets_shown(targets: np.ndarray, ignored: int | None) -> dict[str, Any]:
    """The range and distinct values of a call's targets, as fields of LossCall.

    Args:
        ignored: the class number that the loss ignores.
    """
    live = targets.reshape(-1)
    if ignored is not None and targets.dtype.kind != "f":
        live = live[live != ignored]
    if live.dtype.kind not in "iufb":
        return {}
    distinct = np.unique(live[:_SEARCHED])
    finite = live[np.isfinite(live)] if live.dtype.kind == "f" else live
    return {
        "smallest_target": int(finite.min()) if finite.size else None,
        "largest_target": int(finite.max()) if finite.size else None,
        "target_values": tuple(float(x) for x in distinct) if len(distinct) <= _MOST_DISTINCT else (),
    }


def scores_shown(scores: np.ndarray, class_axis: int, *, rounding: float, whole: bool = True) -> dict[str, Any]:
    """Whether the scores are probabilities, and over which axis, as fields of LossCall.

    Args:
        rounding: how far from one the sum of a row of probabilities may be.
        whole: these are all rows of the batch.
    """
    if scores.dtype.kind not in "iufb" or not scores.size:
        return {}
    unit = bool(((scores >= 0) & (scores <= 1)).all())
    found: dict[str, Any] = {"in_unit_range": unit}
    if scores.ndim < 2 or scores.shape[class_axis] < 2:
        return found

    def sums_to_one(axis: int) -> bool:
        return unit and _is_one(scores.sum(axis, dtype=np.float64), rounding)

    def logs_of_one(axis: int) -> bool:
        return float(scores.max()) < rounding and _is_one(np.exp(scores, dtype=np.float64).sum(axis), rounding)

    found |= {"rows_sum_to_one": sums_to_one(class_axis), "log_normalised": logs_of_one(class_axis)}
    tall = whole and class_axis == 1 and 1 < len(scores) != scores.shape[1]
    return found | {
        "columns_sum_to_one": tall and not found["rows_sum_to_one"] and sums_to_one(0),
        "columns_log_normalised": tall and not found["log_normalised"] and logs_of_one(0),
    }


def is_one_hot(scores: np.ndarray, targets: np.ndarray) -> bool:
    """Whether targets have the scores' shape (rows, classes) and each row is 1 for one class and 0 for the others."""
    if targets.shape != scores.shape or targets.ndim != 2 or targets.shape[1] < 2 or not targets.size:
        return False
    return bool(((targets == 0) | (targets == 1)).all()) and bool((targets.sum(1) == 1).all())


def rows_of_several_labels(scores: np.ndarray, targets: np.ndarray) -> int:
    """Number of rows that sum to more than one, for vector targets of the scores' shape."""
    if targets.ndim < 2 or targets.shape != scores.shape or targets.shape[-1] < 2:
        return 0
    return int((targets.astype(np.float64).sum(-1) > 1 + SUM_WITHIN).sum())


def cross_entropy(
    scores: np.ndarray, labels: np.ndarray, class_axis: int, *, from_logits: bool = True, ignored: int | None = None
) -> float | None:
    """The mean cross-entropy in nats, without weights or smoothing; None if shapes or labels do not fit.

    Args:
        labels: class numbers, in the scores' shape without the class axis.
        ignored: the label that is left out.
    """
    if scores.ndim < 2 or labels.dtype.kind not in "iu":
        return None
    rows = np.moveaxis(scores, class_axis, -1)
    if rows.shape[:-1] != labels.shape:
        return None
    rows, labels = rows.reshape(-1, rows.shape[-1]), labels.reshape(-1)
    if ignored is not None:
        rows, labels = rows[labels != ignored], labels[labels != ignored]
    if not labels.size or labels.min() < 0 or labels.max() >= rows.shape[1]:
        return None
    chosen = rows[np.arange(len(labels)), labels]
    if from_logits:
        peak = rows.max(1, keepdims=True)
        sums = np.exp(rows - peak).sum(1, dtype=np.float64)
        return float((np.log(sums) + peak[:, 0] - chosen).mean())
    sums = np.clip(rows, _CLIPPED, 1 - _CLIPPED).sum(1, dtype=np.float64)
    return float((np.log(sums) - np.log(np.clip(chosen, _CLIPPED, 1 - _CLIPPED))).mean())


def row_labels(count: int, *candidates: np.ndarray | None) -> tuple[float, ...]:
    """One label per row, from the first array that has one for each row: class numbers or one-hot rows."""
    for array in candidates:
        if array is None:
            continue
        if array.ndim == 2 and array.shape[1] > 1 and bool((array.sum(1) == 1).all()):
            array = array.argmax(1)
        if array.size == count and array.dtype.kind in "iufb":
            return tuple(float(x) for x in array.reshape(-1))
    return ()


def _is_one(sums: np.ndarray, within: float) -> bool:
    return bool(np.abs(sums - 1).max() < within)


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
    if _differ(now, exchanged) > _SAME_WITHIN:
        return False
    return min(_differ(now, in_shape), _differ(in_shape, in_shape_exchanged)) > _OTHER_WITHIN


def is_of_all_pairs(together: float, pairs: np.ndarray) -> bool:
    """Whether the loss of a few rows is the mean over all pairs of an output and a target, not over the rows.

    Args:
        together: the loss of the rows together.
        pairs: (outputs, targets), the loss of each single pair.
    """
    if not np.isfinite([together, *pairs.ravel()]).all():
        return False
    if _differ(together, float(pairs.diagonal().mean())) <= _OTHER_WITHIN:
        return False
    return _differ(together, float(pairs.mean())) <= _SAME_WITHIN


def _differ(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1e-12)
