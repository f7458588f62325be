"""The loss of a constant prediction on the same rows, the lowest possible loss there, and how many answers are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainwright.probes.losses import is_one_hot
from trainwright.stages import CLASS_LOSSES, DISTANCES, IGNORED_LABEL
from trainwright.stages.overfit import Hits

# If the script's loss differs by more than this from its one loss call, it has further terms.
SAME_WITHIN = 1e-3
# No known constant, and no known floor.
_UNTOLD = (None, 0.0)
_LOGITS, _BITS = "binary_cross_entropy_with_logits", "binary_cross_entropy"


@dataclass(frozen=True, kw_only=True)
class JudgedLoss:
    """The arguments of one loss call, except the values of the predictions."""

    function: str
    shape: tuple[int, ...]
    """Shape of the predictions."""
    class_axis: int = 1
    """The predictions' class axis."""
    targets: np.ndarray
    value: float
    options: Mapping[str, Any] = field(default_factory=dict)
    """The call's options under torch's names; class weights as arrays."""
    answers: tuple[list[int], list[int]] = ([], [])
    """Predicted and true classes; empty if the call does not classify rows."""
    hits: Hits | None = None
    """How many of its answers are right; None if they are neither classes nor labels of yes or no."""

    @property
    def width(self) -> int:
        """How many classes there are scores for, in a loss of classes."""
        return self.shape[self.class_axis] if len(self.shape) > 1 else self.shape[0]

    @property
    def aims(self) -> np.ndarray:
        """(elements): class numbers, or (elements, columns)."""
        if self.function not in CLASS_LOSSES:
            return self.targets.reshape(len(self.targets), -1).astype(np.float64)
        if self.targets.shape == self.shape and self.width > 1:
            return np.moveaxis(self.targets, self.class_axis, -1).reshape(-1, self.width).astype(np.float64)
        return self.targets.reshape(-1).astype(np.int64)

    @property
    def counted(self) -> np.ndarray:
        """(elements): whether the loss counts them."""
        aims = self.aims
        is_class = self.function in CLASS_LOSSES and aims.ndim == 1
        return aims != self.option("ignore_index", IGNORED_LABEL) if is_class else np.ones(len(aims), dtype=bool)

    @property
    def mass(self) -> float:
        """What the sum of its elements' losses is divided by."""
        weight, aims = self.options.get("weight"), self.aims[self.counted]
        return float(len(aims) if weight is None or aims.ndim > 1 else np.asarray(weight)[aims].sum())

    def option(self, name: str, otherwise: float) -> float:
        """A number among the options; `otherwise` if it was not set."""
        return _number(self.options, name, otherwise)


def _number(options: Mapping[str, Any], name: str, otherwise: float) -> float:
    value = options.get(name)
    return otherwise if value is None else float(value)


def constant_and_floor(batches: Sequence[Sequence[JudgedLoss]], losses: Sequence[float]) -> tuple[float | None, float]:
    """The loss of the best constant prediction, and the lowest possible loss; None and 0 if unknown.

    Args:
        batches: the loss calls of each batch; only a single call that is the whole loss can be judged.
        losses: the script's loss of each batch.
    """
    if not batches or any(len(calls) != 1 for calls in batches):
        return _UNTOLD
    calls = [c[0] for c in batches]
    if any(not abs(c.value - loss) <= SAME_WITHIN * abs(loss) for c, loss in zip(calls, losses)):
        return _UNTOLD
    first = calls[0]
    if any(c.function != first.function or c.shape[1:] != first.shape[1:] for c in calls):
        return _UNTOLD
    if any(c.options.get("reduction", "mean") != "mean" for c in calls):
        return _UNTOLD
    if first.function in CLASS_LOSSES:
        return _classes(calls)
    if any(c.targets.size != np.prod(c.shape) or c.targets.shape[1:] != first.targets.shape[1:] for c in calls):
        return _UNTOLD
    targets = np.concatenate([c.targets for c in calls]).astype(np.float64)
    if first.function in DISTANCES:
        middles = (targets.mean(0), np.median(targets, axis=0))
        return min(float(distance(first.function, targets - m, first.options).mean()) for m in middles), 0.0
    return _bits(first, targets) if first.function.startswith("binary_cross_entropy") else _UNTOLD


def answers(
    function: str, scores: np.ndarray, targets: np.ndarray, *, of_indices: bool = False
) -> tuple[list[int], list[int]]:
    """Predicted and true classes if targets are one-hot, or if a single score per row is compared with 0 or 1.

    Args:
        of_indices: also if a class loss compares each row of scores (N, C) with one class number.
    """
    if scores.ndim == 2 and is_one_hot(scores, targets):
        return scores.argmax(1).tolist(), targets.argmax(1).tolist()
    indices = of_indices and function in CLASS_LOSSES and scores.ndim == 2 and scores.shape[1] > 1
    if indices and targets.size == len(scores):
        return scores.argmax(1).tolist(), targets.reshape(-1).astype(np.int64).tolist()
    single = bool(scores.ndim) and scores.size == len(scores) == targets.size
    if not single or not bool(((targets == 0) | (targets == 1)).all()):
        return [], []
    middle = 0.0 if function == "binary_cross_entropy_with_logits" else 0.5
    return (scores.reshape(-1) > middle).astype(int).tolist(), targets.reshape(-1).astype(int).tolist()


def _classes(calls: Sequence[JudgedLoss]) -> tuple[float | None, float]:
    call, width = calls[0], calls[0].width
    if all(c.aims.ndim > 1 for c in calls):
        return _soft_classes(call, np.concatenate([c.aims for c in calls]), width)
    if len(call.targets) == width > 2 and len(np.unique(call.targets)) == width:
        return _UNTOLD  # rows that are each other's classes (a contrastive loss) have no constant prediction
    labels = np.concatenate([c.targets.reshape(-1) for c in calls]).astype(np.int64)
    labels = labels[labels != call.option("ignore_index", IGNORED_LABEL)]
    if not labels.size or labels.min() < 0 or labels.max() >= width:
        return _UNTOLD
    return _indices(call, np.bincount(labels, minlength=width).astype(np.float64))


def _indices(call: JudgedLoss, counts: np.ndarray) -> tuple[float, float]:
    """For class numbers: the class frequencies, weighted and smoothed like the loss."""
    smoothing, width = call.option("label_smoothing", 0.0), len(counts)
    weight = call.options.get("weight")
    weights = np.ones(width) if weight is None else np.asarray(weight, dtype=np.float64)
    whole = (counts * weights).sum()
    mass = (1 - smoothing) * weights * counts + smoothing / width * weights * counts.sum()
    constant = _entropy(mass) / whole
    if not smoothing:
        return float(constant), 0.0
    eye = np.eye(width)
    of_rows = sum(
        counts[y] * _entropy(smoothing / width * weights + (1 - smoothing) * weights * eye[y])
        for y in np.flatnonzero(counts)
    )
    return float(constant), float(of_rows / whole)


def _soft_classes(call: JudgedLoss, targets: np.ndarray, width: int) -> tuple[float | None, float]:
    """For targets with a number per class, (rows, classes)."""
    if call.options.get("weight") is not None:
        return _UNTOLD
    smoothing = call.option("label_smoothing", 0.0)
    targets = (1 - smoothing) * targets + smoothing / width
    return _entropy(targets.mean(0)), float(np.mean([_entropy(row) for row in targets]))


def _bits(call: JudgedLoss, targets: np.ndarray) -> tuple[float | None, float]:
    """For targets from 0 to 1, with each column on its own."""
    if call.options.get("weight") is not None or targets.min() < 0 or targets.max() > 1:
        return _UNTOLD
    smoothing, weight = call.option("label_smoothing", 0.0), call.options.get("pos_weight")
    positive = np.asarray(1.0 if weight is None else weight, dtype=np.float64)
    targets = (1 - smoothing) * targets + smoothing / 2

    def lost(share: np.ndarray) -> float:
        on, off = positive * share, 1 - share
        return float(-(_times_log(on, on / (on + off)) + _times_log(off, off / (on + off))).mean())

    return lost(targets.mean(0)), lost(targets)


def distance(function: str, difference: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    """Each element's loss of a difference from its target, as defined by torch and Keras."""
    size: np.ndarray = np.abs(difference)
    if function == "mse_loss":
        return np.asarray(size**2)
    smooth = function == "smooth_l1_loss"
    bend = _number(options, "beta" if smooth else "delta", 1.0)
    if function == "l1_loss" or not bend:
        return size
    huber = np.where(size <= bend, size**2 / 2, bend * (size - bend / 2))
    return np.asarray(huber / bend if smooth else huber)


def _entropy(mass: np.ndarray) -> float:
    """Σ m ln(Σm / m): the lowest cross-entropy, times its mass, of a prediction for this mass over classes."""
    return float(-_times_log(mass, mass / max(mass.sum(), 1e-300)).sum())


def _times_log(factor: np.ndarray, value: np.ndarray) -> np.ndarray:
    """factor x ln(value), and 0 where the factor is 0."""
    return np.asarray(factor * np.log(np.where(factor > 0, value, 1.0)))


def hits_of_classes(predictions: Sequence[int], labels: Sequence[int]) -> Hits | None:
    """Of predicted and true classes; None if there are none."""
    if not labels or len(predictions) != len(labels):
        return None
    return _of_classes(np.asarray(predictions), np.asarray(labels))


def hits_of_call(
    function: str, scores: np.ndarray, targets: np.ndarray, *, class_axis: int = 1, ignored: float = IGNORED_LABEL
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
