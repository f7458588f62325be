"""The size of the gradient after each thing that changes it: backward passes, clipping, clearing, other statements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from trainwright.core.finding import Place
from trainwright.seams.source.places import user_place
from trainwright.stages.gradients import BY_HAND, CLEARED, GradientChange

# Two norms of the same gradients are equal up to rounding.
_SAME_WITHIN = 1e-4


class GradientChanges:
    """Keeps what happened to the gradients of some parameters, in order.

    Args:
        parameters: those whose gradients count; without any, nothing is kept.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.found: list[GradientChange] = []
        self._parameters = parameters
        self._last: float | None = None

    def look(self) -> bool:
        """Keep a change that no known call made; returns whether it left nothing of a gradient."""
        if not self._parameters:
            return False
        before, now = self._last, self._norm()
        if before is None or abs(now - before) <= _SAME_WITHIN * before:
            return False
        self._add(CLEARED if now == 0 else BY_HAND, before, now, None)
        return now == 0

    def begin(self) -> None:
        """A known call is about to change the gradients."""
        self.look()
        self._last = self._norm() if self._parameters else None

    def end(self, kind: str) -> None:
        """The call is over."""
        if self._parameters:
            self._add(kind, self._last or 0.0, self._norm(), user_place())

    def _add(self, kind: str, before: float, after: float, where: Place | None) -> None:
        self.found.append(GradientChange(kind=kind, before=before, after=after, where=where))
        self._last = after

    def _norm(self) -> float:
        squares = 0.0
        for gradient in (p.grad.detach() for p in self._parameters if p.grad is not None):
            dense = gradient.coalesce().values() if gradient.is_sparse else gradient
            squares += float(dense.double().norm()) ** 2
        return math.sqrt(squares)
