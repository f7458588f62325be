"""Comparisons of the gradients of several steps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

Gradient = Mapping[Any, np.ndarray]
"""The gradients of one step, by parameter."""


def product(left: Gradient, right: Gradient) -> float:
    """The inner product over the parameters in both."""
    return sum(dot(left[name], right[name]) for name in _common(left, right))


def dot(left: np.ndarray, right: np.ndarray) -> float:
    """The sum of the products, in float64 without a copy of either."""
    return float(np.einsum("i,i->", left.reshape(-1), right.reshape(-1), dtype=np.float64))


def total_norm(norms: Sequence[float]) -> float | None:
    """The L2 norm of all gradients together, from the norm of each; None if there are none."""
    return float(np.sqrt(np.sum(np.square(norms)))) if norms else None


def share_added(alone: Gradient, together: Gradient, part: Gradient) -> float | None:
    """How much of a gradient is in the difference of two others, in multiples of it; None if it is zero.

    1 if `together` is `alone` plus `part`, 0 if nothing of `part` was added.
    """
    size = product(part, part)
    common = [name for name in _common(together, alone) if name in part]
    if not size or not common:
        return None
    return sum(dot(together[name] - alone[name], part[name]) for name in common) / size


def _common(left: Gradient, right: Gradient) -> list[Hashable]:
    return [name for name in left if name in right]
