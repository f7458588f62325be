"""What a model's answers to changed inputs show of its forward pass, whatever the framework."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

# A change of the output below this share of its scale is float32 rounding.
SAME_WITHIN = 1e-6
# A change above it is no rounding of other sums either: what was changed reaches the output.
LEAKS_BEYOND = 1e-3
# The noise added to a weight has this share of its tensor's deviation as its own; of SPREAD_OF_EQUALS where all are equal.
MOVED_BY = 0.1
SPREAD_OF_EQUALS = 0.1
# Equal units may differ by this share of the largest weight: rounding.
_UNITS_WITHIN = 1e-5


class AnsweringModel(Protocol):
    """A model that can be called again with other inputs, and is left as it was by each call."""

    def answer(self, inputs: Any, *, training: bool = False) -> np.ndarray | None:
        """The scores (rows, …) in evaluation mode, or as in training; None where there are none to compare."""

    def all_answers(self, inputs: Any) -> list[np.ndarray]:
        """Every tensor that it answers with in evaluation mode, and the loss where there is one."""

    def chosen(self, inputs: Any, rows: Sequence[int]) -> Any:
        """The inputs with these rows only; repeats are allowed."""

    def exchanged(self, inputs: Any, name: str) -> Any | None:
        """The inputs with the rows of one of them moved on by one; None where that changes nothing."""

    def moved_weights(self) -> AbstractContextManager[None]:
        """Every weight is moved a little (`moved`) inside, and restored at the end."""


def difference(left: np.ndarray, right: np.ndarray) -> float:
    """Largest difference relative to the scale of the left values: their mean size and deviation together."""
    if not left.size:
        return 0.0
    left = left.astype(np.float64)
    scale = float(left.std()) + float(np.abs(left).mean()) + 1e-12
    return float(np.abs(left - right).max()) / scale


def moved(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A weight's values with noise on them."""
    noise = random.standard_normal(values.shape, dtype=np.float32)
    return np.asarray(values + MOVED_BY * (float(values.std()) or SPREAD_OF_EQUALS) * noise, dtype=values.dtype)


def same_for_other_inputs(model: AnsweringModel, base: np.ndarray, inputs: Any, other: Any) -> dict[str, bool]:
    """Whether two batches of different inputs get the same answer, with the weights as they are and moved.

    Args:
        base: the answer to `inputs`.

    Returns:
        Fields of ForwardFacts; empty where the answers cannot be compared.
    """
    answer = model.answer(other)
    if answer is None or answer.shape[1:] != base.shape[1:]:
        return {}
    if not _same_rows(base, answer):
        return {"same_for_other_inputs": False}
    # In evaluation mode, untrained batch statistics leave inputs unnormalized, so training mode is asked as well.
    in_training = [model.answer(batch, training=True) for batch in (inputs, other)]
    if not _same_rows(*in_training):
        return {"same_for_other_inputs": False}
    with model.moved_weights():
        answers = [model.answer(batch) for batch in (inputs, other)]
    if any(a is None for a in answers):
        return {"same_for_other_inputs": True}
    return {"same_for_other_inputs": True, "same_when_perturbed": _same_rows(*answers)}


def _same_rows(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Whether two answers are the same in the rows that both have; a missing answer counts as the same."""
    if left is None or right is None:
        return True
    count = min(len(left), len(right)) if left.ndim and right.ndim else None
    return difference(left[:count], right[:count]) < SAME_WITHIN if count is not None else bool(left == right)


def leaking_rows(
    model: AnsweringModel, base: np.ndarray, inputs: Any, rows: Sequence[int]
) -> tuple[float, int | None] | None:
    """By how much an answer changes when all other rows become copies of its own, and the row where that is most.

    Args:
        base: the answer to `inputs`.
        rows: those whose answers are compared; the search ends at the first that leaks.

    Returns:
        None where it cannot be told: the model keeps a state from call to call, or relates all rows on purpose.
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


def _row_difference(base: np.ndarray, changed: np.ndarray, row: int) -> float:
    """By how much of its scale one row of the scores changes; a single number has that of all rows."""
    if base[row].size > 1:
        return difference(base[row], changed[row])
    scale = float(np.abs(base).mean() + base.std() + 1e-12)
    return float(np.abs(base[row] - changed[row]).max()) / scale


def ignored_inputs(model: AnsweringModel, inputs: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the inputs whose exchange between rows changes no answer.

    A branch whose last layer starts at zero lets nothing through either: suspects are tried again with weights moved.
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


def units_equal(weight: np.ndarray, unit_axis: int) -> bool:
    """Whether all units of a weight are equal to within rounding of their values.

    Args:
        unit_axis: the axis of the units: torch's first, Keras's last.
    """
    units = np.moveaxis(weight, unit_axis, 0).reshape(weight.shape[unit_axis], -1)
    return bool(np.abs(units - units[:1]).max() <= _UNITS_WITHIN * np.abs(units).max())
