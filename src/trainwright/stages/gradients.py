"""Stage 5, gradients: what reaches each parameter."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core.finding import Failure, Place
from trainwright.core.stage import Facts, Stage


@dataclass(frozen=True, kw_only=True)
class GradientOf:
    """One trainable parameter after backward."""

    name: str
    module: str
    shape: tuple[int, ...]
    norm: float | None
    """L2; None: no gradient arrived."""
    weight_norm: float
    non_finite: int = 0
    where: Place | None = None
    """The user's line that built its module."""


@dataclass(frozen=True, kw_only=True)
class CutOff:
    """A call in the user's code that takes a tensor off the graph: detach, data, item, numpy, argmax."""

    operation: str
    where: Place | None


@dataclass(frozen=True, kw_only=True)
class GradientFacts(Facts):
    """The gradients of one batch's loss."""

    stage = Stage.GRADIENTS
    failure: Failure | None = None
    gradients: tuple[GradientOf, ...] = ()
    norm: float | None = None
    """Of all parameters together, before clipping."""
    clip_at: float | None = None
    cuts: tuple[CutOff, ...] = ()
    """Seen between the model's input and the loss."""
    loss_finite: bool = True
    loss_requires_grad: bool = True
    forward_parameters: tuple[str, ...] = ()
    """Trainable parameters whose module was called in the forward pass."""
    leftover_ratio: float | None = None
    """After a second step: the share of the first batch's gradient still in the gradient; 0 is right."""
    accumulation_error: float | None = None
    """Relative distance between the gradient of k micro-batches as accumulated and that of the full batch."""
    accumulation: int = 1

    @property
    def without(self) -> tuple[GradientOf, ...]:
        """Trainable parameters that no gradient reached."""
        return tuple(g for g in self.gradients if g.norm is None)
