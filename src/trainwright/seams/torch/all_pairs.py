"""The user's operations on outputs (N, 1) and targets (N), which torch broadcasts to N x N numbers."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from trainwright.core import Place

# Addition is excluded: adding a bias with as many numbers as rows to a column is intentional.
_OPERATIONS = frozenset(
    ["sub", "__sub__", "__rsub__", "rsub", "subtract", "mul", "__mul__", "__rmul__", "multiply", "div", "__truediv__",
     "__rtruediv__", "true_divide", "divide"]
)  # fmt: skip
# How code adds an axis deliberately: all pairs are intended there.
_AXIS_WRITTEN = ("None", "newaxis", "unsqueeze")


@dataclass(frozen=True)
class Pairing:
    """One operation that broadcast two tensors with equally many numbers against each other."""

    outputs: tuple[int, ...]
    """The shape of the side that gradients pass through."""
    targets: tuple[int, ...]
    where: Place | None


def is_paired(func: Any, args: Sequence[Any]) -> bool:
    """Whether an operation broadcasts two tensors of N rows, whose shapes differ by an axis of 1, to N x N numbers.

    These are (N, 1) with (N), and (N, 1, H, W) with (N, H, W).
    """
    if getattr(func, "__name__", "") not in _OPERATIONS or len(args) < 2:
        return False
    one, other = args[:2]
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    long, short = (one.shape, other.shape) if one.dim() > other.dim() else (other.shape, one.shape)
    return len(long) in (2, 4) and short[:1] > (1,) and long == (short[0], 1, *short[1:])


def pairing_of(one: torch.Tensor, other: torch.Tensor, where: Place | None) -> Pairing | None:
    """The two sides by their role in training; None if both or neither have gradients, or if pairs are intended."""
    if one.requires_grad == other.requires_grad or not torch.is_grad_enabled():
        return None
    line = linecache.getline(where.file, where.line) if where is not None else ""
    if any(word in line for word in _AXIS_WRITTEN):
        return None
    outputs, targets = (one, other) if one.requires_grad else (other, one)
    return Pairing(tuple(outputs.shape), tuple(targets.shape), where)
