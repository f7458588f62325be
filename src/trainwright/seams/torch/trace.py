"""Traces every call of a forward pass: where a difference begins, and where a value stops being finite."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from trainwright.core import Place
from trainwright.probes.forward import difference
from trainwright.seams.source.places import user_place
from trainwright.stages import Origin
from trainwright.tensors.torch import objects as tensors
from trainwright.tensors.torch.transforms import within_transform

# A recorded pass takes at most this many numbers (400 MB); later calls are not compared.
MOST_NUMBERS = 100_000_000
# Relative to the values' scale; float32 sums in another order differ by about 1e-6.
DIFFERENT_BEYOND = 1e-4
# Calls that produce infinity on purpose: masks.
# Calls whose result has only values that were there before.
_PASSING_ON = frozenset({"__get__", "detach", "clone", "double", "view", "reshape", "contiguous", "requires_grad_"})
_FILLING = frozenset({
    "masked_fill", "masked_fill_", "fill_", "full", "full_like", "new_full", "where", "triu", "tril", "triu_", "tril_",
    "__setitem__", "empty", "empty_like", "tensor", "as_tensor", "to", "clone", "expand",
})  # fmt: skip


@dataclass(frozen=True)
class TracedResult:
    """One call's result: the recorded part, and the rows of its input."""

    operation: str
    where: Place | None
    kept: torch.Tensor | None
    rows: int
    given_rows: frozenset[int]


class Trace(TorchFunctionMode):
    """Records a part of every floating-point result while it is active."""

    def __init__(self, keep: Callable[[torch.Tensor], torch.Tensor | None]) -> None:
        super().__init__()
        self.made: list[TracedResult] = []
        self._keep = keep
        self._numbers = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        seen = result[0] if isinstance(result, tuple) and result else result
        if isinstance(seen, torch.Tensor) and seen.dim() and seen.is_floating_point() and not within_transform():
            kept = self._keep(seen.detach()) if self._numbers < MOST_NUMBERS else None
            if kept is not None:
                kept = kept.clone()
                self._numbers += kept.numel()
            given = frozenset(len(t) for t in tensors.tensors_in((*args, *(kwargs or {}).values())) if t.dim())
            where = user_place(sys._getframe(1))
            self.made.append(TracedResult(getattr(func, "__name__", str(func)), where, kept, len(seen), given))
        return result


def differs(left: TracedResult, right: TracedResult) -> bool | None:
    """Whether two passes differ in the result of one call; None if they cannot be compared."""
    one, other = left.kept, right.kept
    if one is None or other is None or one.shape != other.shape or not one.numel():
        return None
    values = (tensors.to_numpy(kept.nan_to_num()) for kept in (one, other))
    return difference(*values) > DIFFERENT_BEYOND


def first_difference(left: Sequence[TracedResult], right: Sequence[TracedResult]) -> Origin | None:
    """The first call whose result differs between two passes."""
    for one, other in zip(left, right):
        if one.operation != other.operation:
            return None
        if differs(one, other):
            return Origin(operation=one.operation, where=one.where)
    return None


def last_difference(left: Sequence[TracedResult], right: Sequence[TracedResult]) -> Origin | None:
    """The first call after which no result differs between two passes."""
    if [m.operation for m in left] != [m.operation for m in right]:
        return None
    different = [i for i, pair in enumerate(zip(left, right)) if differs(*pair)]
    after = different[-1] + 1 if different else 0
    return Origin(operation=left[after].operation, where=left[after].where) if after < len(left) else None


def _is_finite(values: torch.Tensor) -> bool:
    """Whether all values are finite; a sum, which is several times faster, already shows it unless it overflows."""
    return math.isfinite(float(values.sum())) or bool(torch.isfinite(values).all())


class FirstNonFinite:
    """Watches every call of a step, and records the first that produced NaN or infinity from finite values."""

    def __init__(self) -> None:
        self._infinite: Origin | None = None
        self._nan: Origin | None = None
        self._from_infinite = False

    @property
    def origin(self) -> Origin | None:
        """Where it began: an infinity that led to NaN takes precedence."""
        return self._infinite if self._nan is None or (self._from_infinite and self._infinite) else self._nan

    def see(self, func: Any, given: Sequence[Any], result: Any, frame: FrameType, module: str) -> None:
        """Examine one call's result."""
        if self._nan is not None or not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return
        name = getattr(func, "__name__", str(func))
        if name in _PASSING_ON:
            return
        seen = result.detach()
        if seen.layout != torch.strided or seen.numel() == 0 or seen.device.type == "meta" or _is_finite(seen):
            return
        dense = [t for t in tensors.tensors_in(given) if t.layout == torch.strided]
        floats = [t.detach() for t in dense if t.is_floating_point() and t.numel()]
        if any(bool(torch.isnan(t).any()) for t in floats) or name in _FILLING:
            return
        infinite = any(bool(torch.isinf(t).any()) for t in floats)
        has_nan = bool(torch.isnan(seen).any())
        count = int((torch.isnan(seen) if has_nan else torch.isinf(seen)).sum())
        origin = Origin(operation=name.strip("_"), where=user_place(frame), module=module, count=count)
        if has_nan:
            self._nan, self._from_infinite = origin, infinite
        elif not infinite and self._infinite is None:
            self._infinite = origin
