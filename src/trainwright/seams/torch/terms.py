"""Takes the minimized loss apart into the terms that were added up, with the line that made each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from trainwright.core import Place
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.source.places import user_place
from trainwright.stages import LossTerm

# What adds single numbers up, and what changes one by a factor.
_SUMS = frozenset(
    {"__add__", "__radd__", "__iadd__", "add", "add_", "__sub__", "__rsub__", "__isub__", "sub", "sub_", "rsub"}
)
_MULTIPLES = frozenset({
    "__mul__", "__rmul__", "__imul__", "mul", "mul_", "__truediv__", "__itruediv__", "div", "div_", "__neg__", "neg", "mean",
    "sum", "squeeze", "reshape", "view", "to", "float", "double", "half", "bfloat16", "clone",
})  # fmt: skip
# Terms that add up to another number than the loss are not its terms.
ROUNDING = 1e-3
# What is left of a sum beside its known part is a constant, if it is more than this share of the sum.
_IS_CONSTANT = 1e-6


@dataclass(frozen=True, kw_only=True)
class _Made:
    """An operation that gave a single number."""

    operation: str
    value: torch.Tensor
    """A copy: what is added in place later changes the number itself."""
    function: str
    """The loss function that was called; empty: none."""
    where: Place | None


class TermWatch:
    """Remembers the operations of a step that gave single numbers."""

    def __init__(self) -> None:
        self._made: dict[Any, _Made] = {}

    def see(self, func: Any, result: Any, frame: FrameType, function: str = "") -> None:
        """Remember one result, if it is a single number that depends on weights.

        Args:
            function: the loss function that gave it, if one did.
        """
        if not isinstance(result, torch.Tensor) or result.grad_fn is None:
            return
        with tolerated():
            if (
                result.numel() != 1 or result.is_complex() or result.grad_fn in self._made
            ):  # a cast may give what it got
                return
            self._made[result.grad_fn] = _Made(
                operation=getattr(func, "__name__", ""),
                value=result.detach().clone(),
                function=function,
                where=user_place(frame),
            )

    def terms_of(self, total: torch.Tensor) -> list[LossTerm]:
        """The terms of the minimized loss: calls of loss functions, what else was added by line, and constants."""
        factors, found = {total.grad_fn: 1.0}, list[LossTerm]()
        for node in reversed(list(self._made)):  # a number is made after those that it is made of
            if node in factors:
                found += self._split(node, factors.pop(node), factors)
        value = float(total.detach())
        is_explained = abs(sum(one.value for one in found) - value) <= ROUNDING * abs(value)
        return _joined(found) if is_explained else []

    def _split(self, node: Any, factor: float, factors: dict[Any, float]) -> list[LossTerm]:
        """The terms that an operation adds by itself; the factors of the numbers that it is made of are noted."""
        made = self._made[node]
        value = float(made.value)
        inner = [(one, slope) for (one, _), slope in zip(node.next_functions, _slopes(node)) if one is not None]
        known = [(one, slope, float(self._made[one].value)) for one, slope in inner if one in self._made]
        is_whole = bool(known) and len(known) == len(inner)
        if made.function:
            return [LossTerm(value=factor * value, function=made.function, factor=factor, where=made.where)]
        if is_whole and made.operation in _SUMS:
            rest = value - sum(slope * part for _, slope, part in known)
            is_shifted = len(known) == 1 and abs(rest) > _IS_CONSTANT * abs(value)
            parts = [(one, slope) for one, slope, _ in known]
            terms = [LossTerm(value=factor * rest, is_constant=True, where=made.where)] if is_shifted else []
        elif is_whole and len(known) == 1 and known[0][2] and made.operation in _MULTIPLES and not _is_divisor(node):
            parts, terms = [(known[0][0], value / known[0][2])], []
        else:
            parts, terms = [], [LossTerm(value=factor * value, where=made.where)]
        for one, slope in parts:
            factors[one] = factors.get(one, 0.0) + factor * slope
        return terms


def _slopes(node: Any) -> list[float]:
    """By what a sum or a difference multiplies each of its parts."""
    alpha, name = float(getattr(node, "_saved_alpha", 1.0)), node.name()
    signs = [-alpha, 1.0] if name.startswith("Rsub") else [1.0, -alpha if name.startswith("Sub") else alpha]
    return [*signs, *[1.0] * len(node.next_functions)][: len(node.next_functions)]


def _is_divisor(node: Any) -> bool:
    """Whether the only part of an operation that depends on weights is what it divides by."""
    return bool(node.name().startswith("Div")) and node.next_functions[0][0] is None


def _joined(terms: Sequence[LossTerm]) -> list[LossTerm]:
    """What one line adds as one term, as a penalty that is added for each tensor of weights."""
    found: dict[Any, LossTerm] = {}
    for one in reversed(terms):  # as they were made
        key = object() if one.function or one.is_constant or one.where is None else one.where
        found[key] = replace(one, value=found[key].value + one.value) if key in found else one
    return list(found.values())
