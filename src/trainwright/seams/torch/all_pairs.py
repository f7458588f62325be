"""Operations of the user's own in which outputs (N, 1) meet targets (N): torch makes N x N numbers of them."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trainwright.core.finding import Place

# Addition is left out: a bias of as many numbers as there are rows is added to a column on purpose.
_OPERATIONS = frozenset(
    ["sub", "__sub__", "__rsub__", "rsub", "subtract", "mul", "__mul__", "__rmul__", "multiply", "div", "__truediv__",
     "__rtruediv__", "true_divide", "divide"]
)  # fmt: skip
# How an axis is written that is wanted: every pair is meant there.
_AXIS_WRITTEN = ("None", "newaxis", "unsqueeze")


@dataclass(frozen=True)
class Pairing:
    """One operation that spread two tensors of as many numbers over each other."""

    outputs: tuple[int, ...]
    """The shape of the side that gradients pass through."""
    targets: tuple[int, ...]
    where: Place | None


def is_paired(func: Any, args: Sequence[Any]) -> bool:
    """Whether an operation makes N x N numbers of two tensors that both hold N rows, in shapes that differ by an axis of 1.

    Those are (N, 1) with (N), and (N, 1, H, W) with (N, H, W).
    """
    if getattr(func, "__name__", "") not in _OPERATIONS or len(args) < 2:
        return False
    one, other = args[:2]
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    long, short = (one.shape, other.shape) if one.dim() > other.dim() else (other.shape, one.shape)
    return len(long) in (2, 4) and short[:1] > (1,) and long == (short[0], 1, *short[1:])


def pairing_of(one: torch.Tensor, other: torch.Tensor, where: Place | None) -> Pairing | None:
    """The two by their part in training; None where gradients pass through both or none, or pairs are what is wanted."""
    if one.requires_grad == other.requires_grad or not torch.is_grad_enabled():
        return None
    line = linecache.getline(where.file, where.line) if where is not None else ""
    if any(word in line for word in _AXIS_WRITTEN):
        return None
    outputs, targets = (one, other) if one.requires_grad else (other, one)
    return Pairing(tuple(outputs.shape), tuple(targets.shape), where)
