"""Comparisons of the gradients of several steps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

Gradient = Mapping[Any, np.ndarray]
"""The gradients of one step, by parameter."""

# Two gradients that differ by less than this fraction of their size are the same except for rounding.
SAME_WITHIN = 1e-3
# Unequal token counts in the micro-batches move their mean by a few hundredths.
MEAN_WITHIN = 0.15


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


def accumulated(
    together: Gradient, alone: Sequence[Gradient], reached: Gradient | None = None, *, count: int = 0
) -> dict[str, Any]:
    """The result of accumulation over micro-batches, as fields of GradientFacts.

    Args:
        together: the gradient of the window, as training accumulates it.
        alone: the gradient of each single micro-batch; at least two.
        reached: what the last backward pass left. If that is their mean, whatever makes the gradient smaller or larger
            behind it (clipping, say) is no fault of the accumulation.
        count: how many were accumulated, if each came several times.
    """
    share = _share(together, alone)
    if reached and abs(_share(reached, alone) - 1) < MEAN_WITHIN:
        share = 1.0
    last = alone[-1]
    scale = product(last, together) / product(last, last)
    rest = {name: together[name] - scale * last[name] for name in _common(together, last)}
    others = {name: alone[0][name] - last[name] for name in _common(alone[0], last)}
    return {
        "accumulated_share": share,
        "accumulated_batches": count or len(alone),
        "only_last": product(rest, rest) < SAME_WITHIN**2 * product(together, together)
        and product(others, others) > 100 * SAME_WITHIN**2 * product(last, last),
    }


def _share(together: Gradient, alone: Sequence[Gradient]) -> float:
    """A gradient in multiples of the mean of others, by least squares."""
    products = np.array([[product(a, b) for b in alone] for a in alone])
    onto = np.array([product(a, together) for a in alone])
    return float(np.linalg.lstsq(products, onto, rcond=1e-10)[0].sum())


def _common(left: Gradient, right: Gradient) -> list[Hashable]:
    return [name for name in left if name in right]
