"""What a model's outputs for changed inputs, later tokens among them, reveal about its forward pass, in any framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

# A change of the output below this fraction of its scale is float32 rounding.
SAME_WITHIN = 1e-6
# A larger change is not due to a different summation order either: the changed input reaches the output.
LEAKS_BEYOND = 1e-3
# Within this distance of either end, a sigmoid's slope is under 0.01 (s(1-s)): hardly any gradient passes.
SATURATED_WITHIN = 0.01
# The noise added to a weight has this fraction of its tensor's deviation (of SPREAD_OF_EQUALS if that is less).
MOVED_BY = 0.1
SPREAD_OF_EQUALS = 0.1
# Even where inputs are a thirtieth of what bends a tanh, it misses the halfway point by some thousandths of the difference
# between two rows; an affine function misses it by float32 rounding, if rows differ by this part of the output's scale.
AFFINE_WITHIN, SPREAD = 1e-4, 0.03
# Equal units may differ by this fraction of the largest weight, because of rounding.
_UNITS_WITHIN = 1e-5


# Activations by their names in small letters: those that are 0 below 0, and the range of those that have two ends.
RECTIFIERS = ("relu", "relu6")
RANGES = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "softmax": (0.0, 1.0)}


def activation_shares(name: str, values: np.ndarray) -> dict[str, Any]:
    """The share of units that are never positive, or of values near an end of the range, as fields of ModuleFacts.

    Args:
        name: the activation's, in small letters.
        values: its outputs, the units on the last axis.
    """
    if values.dtype.kind != "f" or not values.size:
        return {}
    if name in RECTIFIERS and values.ndim > 1:
        return {"dead_share": float((values.reshape(-1, values.shape[-1]) <= 0).all(axis=0).mean())}
    if name in RANGES:
        low, high = RANGES[name]
        near = (values < low + SATURATED_WITHIN) | (values > high - SATURATED_WITHIN)
        return {"saturated_share": float(near.mean())}
    return {}


class AnsweringModel(Protocol):
    """A model that can be called again with other inputs and is left unchanged by each call."""

    def answer(self, inputs: Any, *, training: bool = False, seed: int = 0) -> np.ndarray | None:
        """The scores (rows, …) in evaluation mode, or as in training; None if there are none to compare."""

    def all_answers(self, inputs: Any) -> list[np.ndarray]:
        """Every output tensor in evaluation mode, and the loss if there is one."""

    def chosen(self, inputs: Any, rows: Sequence[int]) -> Any:
        """The inputs with only these rows; repeats are allowed."""

    def exchanged(self, inputs: Any, name: str) -> Any | None:
        """The inputs with the rows of one of them rotated by one; None if that changes nothing."""

    def change_rows(self, inputs: Any, change: Callable[[Any], Any]) -> Any | None:
        """The inputs with each array of them changed; None if an input is not made of real numbers."""

    def moved_weights(self) -> AbstractContextManager[None]:
        """Perturb every weight a little (`move_values`) inside the block, and restore it at the end."""


def difference(left: np.ndarray, right: np.ndarray) -> float:
    """Largest difference relative to the scale of the left values (mean size plus deviation)."""
    if not left.size:
        return 0.0
    left = left.astype(np.float64)
    scale = float(left.std()) + float(np.abs(left).mean()) + 1e-12
    return float(np.abs(left - right).max()) / scale


def move_values(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A weight's values with added noise."""
    noise = random.standard_normal(values.shape, dtype=np.float32)
    return np.asarray(values + MOVED_BY * max(float(values.std()), SPREAD_OF_EQUALS) * noise, dtype=values.dtype)


def same_for_other_inputs(model: AnsweringModel, base: np.ndarray, inputs: Any, other: Any) -> dict[str, bool]:
    """Whether two batches of different inputs give the same output, with the current weights and with perturbed ones.

    Args:
        base: the output for `inputs`.

    Returns:
        Fields of ForwardFacts; empty if the outputs cannot be compared.
    """
    answer = model.answer(other)
    if answer is None or answer.shape[1:] != base.shape[1:]:
        return {}
    if not _same_rows(base, answer):
        return {"same_for_other_inputs": False}
    # In evaluation mode, untrained batch statistics leave inputs unnormalized, so training mode is checked as well.
    in_training = [model.answer(batch, training=True) for batch in (inputs, other)]
    if not _same_rows(*in_training):
        return {"same_for_other_inputs": False}
    with model.moved_weights():
        answers = [model.answer(batch) for batch in (inputs, other)]
    if any(a is None for a in answers):
        return {"same_for_other_inputs": True}
    return {"same_for_other_inputs": True, "same_when_perturbed": _same_rows(*answers)}


def _same_rows(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Whether two outputs agree in the rows that both have; a missing output counts as the same."""
    if left is None or right is None:
        return True
    count = min(len(left), len(right)) if left.ndim and right.ndim else None
    return difference(left[:count], right[:count]) < SAME_WITHIN if count is not None else bool(left == right)


def leaking_rows(
    model: AnsweringModel, base: np.ndarray, inputs: Any, rows: Sequence[int]
) -> tuple[float, int | None] | None:
    """How much a row's output changes when all other rows become copies of it, and the row where it changes the most.

    Args:
        base: the output for `inputs`.
        rows: the rows to compare; the search ends at the first that leaks.

    Returns:
        None if unknown: the model keeps state between calls, or relates all rows on purpose.
    """
    count = len(base)
    if count < 2 or count in base.shape[1:2]:  # (N, N) scores compare rows on purpose
        return None
    again = model.answer(inputs)
    if again is None or again.shape != base.shape or difference(base, again) >= SAME_WITHIN:
        return None
    largest, where = 0.0, None
    for row in rows:
        changed = model.answer(model.chosen(inputs, [row] * count))
        if changed is None or changed.shape != base.shape:
            return None
        leak = _row_difference(base, changed, row)
        if leak > largest:
            largest, where = leak, row
        if leak > LEAKS_BEYOND:
            break
    return largest, where


def placed_rows(model: AnsweringModel, base: np.ndarray, inputs: Any) -> float | None:
    """How much the outputs of equal rows differ by their place in the batch, relative to their scale.

    Args:
        base: the output for `inputs`.

    Returns:
        None if unknown: random numbers make them differ, or the model relates all rows on purpose.
    """
    count = len(base)
    if count < 2 or count in base.shape[1:2]:
        return None
    equal = model.chosen(inputs, [0] * count)
    one, other = (model.answer(equal, seed=seed) for seed in (1, 2))
    if one is None or other is None or one.shape != base.shape or difference(one, other) >= SAME_WITHIN:
        return None
    return _row_difference(one, one[[0] * count], count - 1)


def _row_difference(base: np.ndarray, changed: np.ndarray, row: int) -> float:
    """The change of one row of scores relative to its scale; for a single number, relative to the scale of all rows."""
    if base[row].size > 1:
        return difference(base[row], changed[row])
    scale = float(np.abs(base).mean() + base.std() + 1e-12)
    return float(np.abs(base[row] - changed[row]).max()) / scale


def ignored_inputs(model: AnsweringModel, inputs: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The inputs that can be permuted between rows without changing any output.

    A branch whose last layer starts at zero passes nothing on either, so suspects are retried with perturbed weights.
    """
    ignored = _without_effect(model, inputs, names)
    if ignored:
        with model.moved_weights():
            ignored = _without_effect(model, inputs, ignored)
    return tuple(ignored)


def _without_effect(model: AnsweringModel, inputs: Any, names: Sequence[str]) -> list[str]:
    others = {name: model.exchanged(inputs, name) for name in names}
    tried = {name: other for name, other in others.items() if other is not None}
    before = model.all_answers(inputs) if tried else []
    return [name for name, other in tried.items() if before and _all_same(before, model.all_answers(other))]


def _all_same(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    pairs = list(zip(left, right))
    return bool(pairs) and all(a.shape == b.shape and difference(a, b) < SAME_WITHIN for a, b in pairs)


def is_affine(model: AnsweringModel, inputs: Any) -> bool | None:
    """Whether the output of each row is an affine function of its inputs: halfway between two rows it is halfway between
    their outputs, with the current weights and with perturbed ones. Rows are moved to a mean of 0: far from it, activations
    are on or off for all of them.

    Returns:
        None if that cannot be asked: inputs that are no real numbers, a single row, or an output that is the same for all.
    """
    rows = model.change_rows(inputs, lambda values: values - values.mean(0))
    base = model.answer(rows) if rows is not None else None
    if base is None or base.ndim < 2 or len(base) < 2 or difference(base, np.roll(base, 1, axis=0)) < SPREAD:
        return None
    changed = model.change_rows(rows, lambda values: (values + values[[*range(-1, len(values) - 1)]]) / 2)
    if not _is_halfway(base, model.answer(changed)):
        return False
    with model.moved_weights():
        again, answer = model.answer(rows), model.answer(changed)
    return again is not None and _is_halfway(again, answer)


def _is_halfway(base: np.ndarray, answer: np.ndarray | None) -> bool:
    """Whether outputs are halfway between each row's and the one before it, up to a part of the rows' differences."""
    before = np.roll(base, 1, axis=0)
    if answer is None or answer.shape != base.shape:
        return False
    return bool(np.abs((base + before) / 2 - answer).max() < AFFINE_WITHIN * np.abs(base - before).max())


def units_equal(weight: np.ndarray, unit_axis: int) -> bool:
    """Whether all units of a weight are equal up to rounding.

    Args:
        unit_axis: the axis of the units: the first in torch, the last in Keras.
    """
    units = np.moveaxis(weight, unit_axis, 0).reshape(weight.shape[unit_axis], -1)
    return bool(np.abs(units - units[:1]).max() <= _UNITS_WITHIN * np.abs(units).max())


def later_half_changed(tokens: np.ndarray, vocabulary: int | None = None) -> np.ndarray:
    """Tokens (rows, length) with every token in the second half replaced.

    Args:
        vocabulary: number of tokens; None: up to the largest token here.
    """
    altered, half = tokens.copy(), tokens.shape[1] // 2
    altered[:, half:] = (altered[:, half:] + 1) % (vocabulary or int(tokens.max()) + 1)
    return altered


def changed_by_later_tokens(
    answer: Callable[[np.ndarray], np.ndarray | None],
    tokens: np.ndarray,
    altered: np.ndarray,
    counted: np.ndarray | None = None,
) -> float | None:
    """How much the outputs (rows, length, …) in the first half of the positions change when later tokens change.

    Args:
        altered: the tokens with the second half replaced.
        counted: the positions (rows, length) that count in the loss; None: all.

    Returns:
        The change relative to the outputs' scale; None if there is not one output per position.
    """
    length = tokens.shape[1]
    half = length // 2
    here = np.ones((len(tokens), half), dtype=bool) if counted is None else counted[:, :half]
    base = answer(tokens)
    if base is None or base.ndim != 3 or base.shape[1] != length or not here.any():
        return None
    changed = answer(altered)
    if changed is None or changed.shape != base.shape:
        return None
    return difference(base[:, :half][here], changed[:, :half][here])
