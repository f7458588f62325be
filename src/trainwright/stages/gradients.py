"""Stage 5, gradients: the gradient that reaches each parameter."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Call, Facts, Failure, Place, Repair, Seam, Stage


@dataclass(frozen=True, kw_only=True)
class GradientOf:
    """The gradient of one trainable parameter after backward."""

    name: str
    module: str
    shape: tuple[int, ...]
    norm: float | None
    """L2 norm; None: no gradient arrived."""
    non_finite: int = 0
    where: Place | None = None
    """The user's line that built its module."""


@dataclass(frozen=True, kw_only=True)
class CutOff:
    """A call in the user's code that detaches a tensor from the graph: detach, data, item, numpy, argmax."""

    operation: str
    """The operation as written; no_grad for a module that was called while gradients were disabled."""
    where: Place | None
    upstream: tuple[str, ...] = ()
    """Names of the trainable parameters that the tensor was computed from."""
    updates_before: int = 0
    """How many optimizer steps came before it."""

    def left_out(self) -> Repair | None:
        """A repair that keeps the tensor in the graph; None if its value cannot carry a gradient."""
        if self.operation not in ("detach()", "detach_()", ".data", "no_grad", "stop_gradient()"):
            return None

        def change(call: Call) -> Call:
            here = call["operation"] == self.operation and call["where"] == self.where
            return call.replace(result=call["value"]) if here else call

        return Repair(f"keep the tensor in the graph at {self.operation}", Seam.CUT, change)


@dataclass(frozen=True, kw_only=True)
class InPlace:
    """A call in the user's code that changed a tensor in place."""

    operation: str
    shape: tuple[int, ...]
    where: Place | None


@dataclass(frozen=True, kw_only=True)
class KeptTensor:
    """An attribute or variable that still holds part of the step's graph after the step."""

    name: str
    where: Place | None
    """The user's line that assigns it."""
    of_trainer: bool = False
    """An attribute of the trainer, which may keep one for its own use; False: of the model, or a variable."""


@dataclass(frozen=True, kw_only=True)
class PlainList:
    """A plain list, tuple or dictionary of layers that are called and get gradients, but are not registered."""

    name: str
    kind: str
    modules: int
    parameters: int
    where: Place | None


BACKWARD, CLIPPED, CLEARED, BY_HAND, STEP = "backward", "clipped", "cleared", "by hand", "step"
"""What changes a gradient: a backward pass, clipping, clearing in any form, another statement; and the optimizer's step."""


@dataclass(frozen=True, kw_only=True)
class GradientChange:
    """Something that happened to the gradient between two updates, and its norm over all parameters."""

    kind: str
    before: float
    after: float
    where: Place | None = None
    """The user's line; None: unknown."""

    @property
    def left(self) -> float:
        """What it left of the gradient's size."""
        return self.after / self.before if self.before > 0 else 1.0


# An update that grows less than this does not depend on the gradient's size.
SAME_UPDATE = 1.1


@dataclass(frozen=True, kw_only=True)
class GradientFacts(Facts):
    """The gradients of one batch's loss."""

    stage = Stage.GRADIENTS
    failure: Failure | None = None
    gradients: tuple[GradientOf, ...] = ()
    norm: float | None = None
    """Norm over all parameters, before clipping."""
    clip_at: float | None = None
    cuts: tuple[CutOff, ...] = ()
    """Calls between the model's input and the loss that cut the graph."""
    loss_finite: bool = True
    loss_requires_grad: bool = True
    leftover_ratio: float | None = None
    """How much of the first batch's gradient is still in the gradient of a second step; 0 is correct."""
    loss_scale: float | None = None
    """The loss scale for half precision: the gradients are divided by it before the optimizer uses them."""
    follows_loss_scale: float | None = None
    """Relative growth of the gradients when that scale is doubled; 1 is correct, 0 means the loss is not scaled."""
    accumulated_share: float | None = None
    """The accumulated gradient of k micro-batches in multiples of the mean of their gradients; 1 is correct."""
    accumulated_batches: int = 1
    """The number of micro-batches k in that measurement."""
    update_growth: float | None = None
    """How much larger the optimizer's update is with gradients `accumulation` times as large, at least twice: 1 for Adam; None:
    unknown, or it does not matter."""
    only_last: bool | None = None
    """The accumulated gradient is the last micro-batch's alone, and the others' gradients differ from it."""
    wiped: tuple[str, ...] = ()
    """Parameters that got a gradient from backward but had none left at their optimizer's step."""
    wiped_passes: int = 0
    """Number of backward passes that one line makes per step, each cleared before the next."""
    wiped_at: Place | None = None
    clipped_early: GradientChange | None = None
    """The clipping of the first update's gradients before there were any; none is clipped behind it."""
    unscaled_late: tuple[GradientChange, GradientChange] | None = None
    """The clipping of the first update's gradients, and the division by a power of two behind it, as a gradient scaler makes it."""
    accumulation: int = 1
    user_loss: bool = False
    """User code called a loss function itself, or none was called because the loss is handwritten."""
    in_place: tuple[InPlace, ...] = ()
    backwards: tuple[Place | None, ...] = ()
    """The user's line of each call of backward in one step; None: the framework's own."""
    kept: tuple[KeptTensor, ...] = ()
    second_failure: Failure | None = None
    """The exception of the second step, if the first completed."""
    anomaly: str = ""
    """The function whose backward failed or produced NaN, as reported by anomaly mode."""
    anomaly_at: Place | None = None
    """The user's line that called it."""
    plain_lists: tuple[PlainList, ...] = ()

    @property
    def size_is_divided_out(self) -> bool:
        """Whether the optimizer's update is known not to depend on the gradient's size."""
        return self.update_growth is not None and self.update_growth < SAME_UPDATE

    @property
    def without(self) -> tuple[GradientOf, ...]:
        """Trainable parameters that got no gradient."""
        return tuple(g for g in self.gradients if g.norm is None)
