"""The loss of each row, of a model's scores and of a constant prediction, under the script's own loss function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainwright.stages.loss import CLASS_LOSSES, DISTANCES

# A loss computed here that differs by more than this from the framework's is not the same function.
SAME_WITHIN = 1e-3
# What is rounded of a score in single precision: a loss of nearly nothing is their difference.
ROUNDING = 4 * float(np.finfo(np.float32).eps)
# Frameworks keep probabilities this far from 0 and 1 before they take the logarithm.
_CLIPPED = 1e-7
_BITS = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


@dataclass(frozen=True)
class RowLosses:
    """Each row's share of a loss: the loss is the sum of `losses` divided by the sum of `weights`."""

    losses: np.ndarray
    """(rows)"""
    weights: np.ndarray
    """(rows); 0 for a row that the loss ignores."""

    @property
    def mean(self) -> float:
        """The loss."""
        return float(self.losses.sum() / self.weights.sum()) if self.weights.sum() else float("nan")


@dataclass(frozen=True)
class Compared:
    """A model's loss on rows, and that of the best constant prediction for them."""

    loss: float
    constant: float
    error: float
    """Standard error of their difference, over the rows; infinite for a single row."""
    rows: int

    @property
    def gain(self) -> float:
        """How much lower the model's loss is."""
        return self.constant - self.loss

    @property
    def deviations(self) -> float:
        """The gain in standard errors."""
        return self.gain / self.error if self.error > 0 else (np.inf if self.gain > 0 else 0.0)

    def is_finite(self) -> bool:
        """Whether all its numbers are."""
        return bool(np.isfinite([self.loss, self.constant, self.error]).all())


@dataclass(frozen=True, kw_only=True)
class LossRows:
    """The rows of one loss call: what a constant prediction is compared with."""

    function: str
    targets: np.ndarray
    """(elements): class numbers, or (elements, columns)."""
    width: int
    """Number of scores for each element."""
    options: Mapping[str, Any]
    scored: RowLosses
    """Of the model's scores, by element."""
    factors: np.ndarray | None = None
    """(elements): what the loss multiplies each element's loss with; None: nothing."""
    answers: np.ndarray | None = None
    """(elements): the class with the highest score; None: these are no classes."""


def loss_rows(
    function: str,
    scores: np.ndarray,
    targets: np.ndarray,
    value: float,
    options: Mapping[str, Any],
    *,
    class_axis: int = 1,
    factors: np.ndarray | None = None,
) -> LossRows | None:
    """The rows of a loss call; None if this loss is not known, or its value is not the mean over them.

    Args:
        factors: (rows, …): what each row's loss is multiplied with, without a change of what it is divided by.
    """
    if options.get("reduction", "mean") != "mean" or not scores.size or not scores.ndim:
        return None
    with np.errstate(all="ignore"):
        told = _told(function, scores, targets, options, class_axis)
        if told is not None and factors is not None:
            told = _multiplied(told, np.asarray(factors, dtype=np.float64).reshape(-1))
        rounding = ROUNDING * float(np.abs(scores).max())
        if told is None or not abs(told.scored.mean - value) <= max(SAME_WITHIN * abs(value), rounding):
            return None
    return told


def _multiplied(told: LossRows, factors: np.ndarray) -> LossRows | None:
    if len(factors) != len(told.scored.losses):
        return None
    scored = RowLosses(told.scored.losses * factors, told.scored.weights)
    return replace(told, scored=scored, factors=factors)


def compare(batches: Sequence[LossRows]) -> Compared | None:
    """The model's loss on the rows of all batches, against the best constant prediction for them.

    The constant is fitted to the rows themselves, which favors it. None where the batches' losses differ in kind, or
    fewer than two rows count.
    """
    kinds = {(b.function, b.width, b.targets.ndim) for b in batches}
    if len(kinds) != 1 or any(b.targets.shape[1:] != batches[0].targets.shape[1:] for b in batches):
        return None
    with np.errstate(all="ignore"):
        constants = [c for c in _constants(batches) if np.isfinite(c.mean)]
    if not constants:
        return None
    best = min(constants, key=lambda c: c.mean)
    lost = np.concatenate([b.scored.losses for b in batches])
    weights = np.concatenate([b.scored.weights for b in batches])
    counted = weights > 0
    if counted.sum() < 2:
        return None
    gains = (best.losses - lost)[counted]
    error = float(gains.std(ddof=1) * np.sqrt(len(gains)) / weights.sum())
    return Compared(float(lost.sum() / weights.sum()), best.mean, error, int(counted.sum()))


def weights_of(values: Sequence[Sequence[float]], totals: Sequence[float]) -> list[float] | None:
    """The weights of loss calls in the loss: least squares over the batches, with a constant for what else it holds.

    Args:
        values: of each batch, the value of each call.
        totals: of each batch, its loss.

    Returns:
        None if they do not explain the losses, or one of them is not positive.
    """
    table, wanted = np.column_stack([np.asarray(values, dtype=float), np.ones(len(values))]), np.asarray(totals)
    if np.linalg.matrix_rank(table) < table.shape[1]:
        return None
    found = np.linalg.lstsq(table, wanted)[0]
    if np.abs(table @ found - wanted).max() > SAME_WITHIN * np.abs(wanted).max() or (found[:-1] <= 0).any():
        return None
    return [float(w) for w in found[:-1]]


def sum_of(terms: Sequence[Compared], weights: Sequence[float]) -> Compared:
    """The comparison of a weighted sum of losses; its error is the largest possible."""
    loss, constant, error = (
        sum(w * value for w, value in zip(weights, values))
        for values in zip(*((t.loss, t.constant, t.error) for t in terms))
    )
    return Compared(loss, constant, error, min(t.rows for t in terms))


def _told(
    function: str, scores: np.ndarray, targets: np.ndarray, options: Mapping[str, Any], class_axis: int
) -> LossRows | None:
    if function in CLASS_LOSSES:
        return _class_rows(function, scores, targets, options, class_axis)
    if targets.size != scores.size or (function not in _BITS and function not in DISTANCES):
        return None
    if function in _BITS and options.get("weight") is not None:
        return None
    rows = len(scores)
    aims = targets.reshape(rows, -1).astype(np.float64)
    given = scores.reshape(rows, -1).astype(np.float64)
    if function in DISTANCES:
        lost = distance(function, given - aims, options)
    else:
        lost = _bits(given if function.endswith("logits") else _logits(given), aims, options)
    return LossRows(
        function=function,
        targets=aims,
        width=aims.shape[1],
        options=options,
        scored=_of_elements(lost),
    )


def _class_rows(
    function: str, scores: np.ndarray, targets: np.ndarray, options: Mapping[str, Any], class_axis: int
) -> LossRows | None:
    if scores.ndim < 2:
        return None
    width = scores.shape[class_axis]
    flat = np.moveaxis(scores, class_axis, -1).reshape(-1, width)
    soft = targets.ndim == scores.ndim and targets.shape == scores.shape and width > 1
    aims = np.moveaxis(targets, class_axis, -1).reshape(-1, width) if soft else targets.reshape(-1).astype(np.int64)
    if len(aims) != len(flat):
        return None
    logs = _log_softmax(flat) if function == "cross_entropy" else _logs(flat)
    scored = _class_losses(logs, aims, options)
    if scored is None:
        return None
    return LossRows(
        function=function,
        targets=aims,
        width=width,
        options=options,
        scored=scored,
        answers=logs.argmax(axis=1),
    )


def _class_losses(logs: np.ndarray, targets: np.ndarray, options: Mapping[str, Any]) -> RowLosses | None:
    """Of log-probabilities, (rows, classes) or (1, classes) for all rows."""
    width = logs.shape[1]
    smoothing = float(options.get("label_smoothing") or 0.0)
    weight = options.get("weight")
    if targets.ndim == 2:
        if weight is not None:
            return None
        aims = (1 - smoothing) * targets + smoothing / width
        return RowLosses(-(np.where(aims > 0, aims * logs, 0.0)).sum(axis=1), np.ones(len(targets)))
    live = targets != int(options.get("ignore_index", -100))
    if not live.any() or targets[live].min() < 0 or targets[live].max() >= width:
        return None
    weights = np.ones(width) if weight is None else np.asarray(weight, dtype=np.float64)
    chosen = np.where(live, targets, 0)
    taken = logs[0, chosen] if len(logs) == 1 else logs[np.arange(len(targets)), chosen]
    lost = -(1 - smoothing) * weights[chosen] * taken
    if smoothing:
        lost = lost - smoothing / width * (logs * weights).sum(axis=1)
    return RowLosses(np.where(live, lost, 0.0), np.where(live, weights[chosen], 0.0))


def _constants(batches: Sequence[LossRows]) -> list[RowLosses]:
    """Each candidate for the best constant prediction, over the rows of all batches."""
    first, targets = batches[0], np.concatenate([b.targets for b in batches])
    factors = np.concatenate([np.ones(len(b.targets)) if b.factors is None else b.factors for b in batches])
    if not factors.sum() > 0:
        return []
    return [RowLosses(c.losses * factors, c.weights) for c in _unmultiplied(first, targets, factors)]


def _unmultiplied(first: LossRows, targets: np.ndarray, factors: np.ndarray) -> list[RowLosses]:
    if first.function in CLASS_LOSSES:
        shares = _class_shares(targets, first, factors)
        found = _class_losses(np.log(np.maximum(shares, 1e-12))[None], targets, first.options)
        return [found] if found is not None else []
    if first.function in DISTANCES:
        middles = (np.average(targets, axis=0, weights=factors), np.median(targets, axis=0))
        return [_of_elements(distance(first.function, m - targets, first.options)) for m in middles]
    positive = np.asarray(_or(first.options.get("pos_weight"), 1.0), dtype=np.float64)
    smoothed = np.average(_smoothed(targets, first.options), axis=0, weights=factors)
    on = np.clip(smoothed, _CLIPPED, 1 - _CLIPPED)
    scores = np.log(positive * on / (1 - on))
    return [_of_elements(_bits(np.broadcast_to(scores, targets.shape), targets, first.options))]


def _class_shares(targets: np.ndarray, first: LossRows, factors: np.ndarray) -> np.ndarray:
    """The probabilities that a constant prediction gives the classes: their shares, weighted and smoothed as the loss."""
    smoothing = float(first.options.get("label_smoothing") or 0.0)
    if targets.ndim == 2:
        aims: np.ndarray = np.average(targets.astype(np.float64), axis=0, weights=factors)
        return (1 - smoothing) * aims + smoothing / first.width
    counted = targets != int(first.options.get("ignore_index", -100))
    weights = np.asarray(_or(first.options.get("weight"), np.ones(first.width)), dtype=np.float64)
    counts = np.bincount(targets[counted], weights=factors[counted], minlength=first.width)
    mass = (1 - smoothing) * weights * counts + smoothing / first.width * weights * counts.sum()
    return np.asarray(mass / mass.sum())


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _of_elements(lost: np.ndarray) -> RowLosses:
    """(rows, columns) of a mean over all of them."""
    return RowLosses(lost.sum(axis=1), np.full(len(lost), float(lost.shape[1])))


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _logs(given: np.ndarray) -> np.ndarray:
    """Log-probabilities from them, or from probabilities."""
    if given.max() <= 0:
        return given
    shares = given / np.maximum(given.sum(axis=1, keepdims=True), _CLIPPED)
    return np.asarray(np.log(np.clip(shares, _CLIPPED, 1 - _CLIPPED)))


def _logits(given: np.ndarray) -> np.ndarray:
    clipped = np.clip(given, _CLIPPED, 1 - _CLIPPED)
    return np.asarray(np.log(clipped / (1 - clipped)))


def _smoothed(targets: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    smoothing = float(options.get("label_smoothing") or 0.0)
    return np.asarray((1 - smoothing) * targets + smoothing / 2)


def _bits(scores: np.ndarray, targets: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    """Binary cross-entropy of logits, by element."""
    positive = np.asarray(_or(options.get("pos_weight"), 1.0), dtype=np.float64)
    aims = _smoothed(targets, options)
    return np.asarray(positive * aims * np.logaddexp(0, -scores) + (1 - aims) * np.logaddexp(0, scores))


def distance(function: str, difference: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    """Each element's loss of a difference from its target, as defined by torch and Keras."""
    size: np.ndarray = np.abs(difference)
    if function == "mse_loss":
        return np.asarray(size**2)
    smooth = function == "smooth_l1_loss"
    bend = float(_or(options.get("beta" if smooth else "delta"), 1.0))
    if function == "l1_loss" or not bend:
        return size
    huber = np.where(size <= bend, size**2 / 2, bend * (size - bend / 2))
    return np.asarray(huber / bend if smooth else huber)
