"""Takes the minimized loss apart into the terms that were added up, with the line that made each."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch

from trainwright.core.finding import Place
from trainwright.seams.source.places import user_place
from trainwright.seams.torch.loss import KeptLoss
from trainwright.stages.loss import LossTerm

# What adds single numbers up, and what changes one by a factor.
_SUMS = frozenset({"__add__", "__radd__", "__iadd__", "add", "add_", "__sub__", "__rsub__", "__isub__", "sub", "sub_"})
_MULTIPLES = frozenset({
    "__mul__", "__rmul__", "__imul__", "mul", "mul_", "__truediv__", "__itruediv__", "div", "div_", "__neg__", "neg", "mean",
    "sum", "squeeze", "reshape", "view", "to", "float", "double", "half", "bfloat16", "clone",
})  # fmt: skip
# Terms that add up to another number than the loss are not its terms.
ROUNDING = 1e-3
# A deeper chain of operations on single numbers is no sum of terms.
_DEEPEST = 64


class TermWatch:
    """Remembers the operations of a step that gave single numbers."""

    def __init__(self) -> None:
        self._made: dict[Any, tuple[str, torch.Tensor, Place | None]] = {}

    def see(self, func: Any, result: Any, frame: FrameType) -> None:
        """Remember one result, if it is a single number that depends on weights."""
        if isinstance(result, torch.Tensor) and result.numel() == 1 and result.grad_fn is not None:
            self._made[result.grad_fn] = getattr(func, "__name__", ""), result.detach(), user_place(frame)

    def terms_of(self, total: torch.Tensor, kept: Sequence[KeptLoss]) -> list[LossTerm]:
        """The terms of the minimized loss: calls of loss functions, what else was added, and constants."""
        calls = {
            k.value.grad_fn: k.function for k in kept if isinstance(k.value, torch.Tensor) and k.value.numel() == 1
        }
        found: list[LossTerm] = []
        self._split(total.grad_fn, 1.0, calls, found, _DEEPEST)
        value = float(total.detach())
        is_explained = abs(sum(one.value for one in found) - value) <= ROUNDING * abs(value)
        return found if is_explained else []

    def _split(self, node: Any, factor: float, calls: dict[Any, str], found: list[LossTerm], deepest: int) -> None:
        made = self._made.get(node)
        if made is None or not deepest:
            return
        operation, result, where = made
        value = float(result)
        inner = [n for n, _ in node.next_functions if n is not None]
        known = [n for n in inner if n in self._made]
        is_whole = bool(known) and len(known) == len(inner)
        if node in calls:
            found.append(LossTerm(value=factor * value, function=calls[node], factor=factor, where=where))
        elif is_whole and operation in _SUMS:
            signs = self._signs(operation, value, known)
            for one, sign in zip(known, signs):
                self._split(one, sign * factor, calls, found, deepest - 1)
            rest = value - sum(sign * float(self._made[n][1]) for n, sign in zip(known, signs))
            if len(known) == 1 and abs(rest) > 1e-6 * abs(value):
                found.append(LossTerm(value=factor * rest, is_constant=True, where=where))
        elif is_whole and len(known) == 1 and operation in _MULTIPLES and float(self._made[known[0]][1]):
            self._split(known[0], factor * value / float(self._made[known[0]][1]), calls, found, deepest - 1)
        else:
            found.append(LossTerm(value=factor * value, where=where))

    def _signs(self, operation: str, value: float, known: Sequence[Any]) -> list[float]:
        """Which of the parts of a sum or a difference are subtracted, by its value."""
        parts = [float(self._made[n][1]) for n in known]
        if "sub" not in operation:
            return [1.0] * len(parts)
        if len(parts) == 1:
            return [-1.0 if operation == "__rsub__" else 1.0]
        return [1.0, -1.0] if abs(parts[0] - parts[1] - value) <= abs(parts[1] - parts[0] - value) else [-1.0, 1.0]
