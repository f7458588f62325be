"""Stage 5, gradients: the gradient that reaches each parameter."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core.finding import Failure, Place
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.stage import Facts, Stage


@dataclass(frozen=True, kw_only=True)
class GradientOf:
    """One trainable parameter after backward."""

    name: str
    module: str
    shape: tuple[int, ...]
    norm: float | None
    """L2; None: no gradient arrived."""
    non_finite: int = 0
    where: Place | None = None
    """The user's line that built its module."""


@dataclass(frozen=True, kw_only=True)
class CutOff:
    """A call in the user's code that detaches a tensor from the graph: detach, data, item, numpy, argmax."""

    operation: str
    """As it is written; no_grad for a module that was called while gradients were off."""
    where: Place | None
    upstream: tuple[str, ...] = ()
    """Names of the trainable parameters from which the tensor was computed."""
    updates_before: int = 0
    """How many optimizer steps came before it."""
    restores: bool = False
    """Without it, a step gives gradients to parameters that get none with it."""

    def left_out(self) -> Repair | None:
        """A repair that keeps the tensor on the graph; None if its value cannot carry a gradient."""
        if self.operation not in ("detach()", "detach_()", ".data", "no_grad", "stop_gradient()"):
            return None

        def change(call: Call) -> Call:
            here = call["operation"] == self.operation and call["where"] == self.where
            return call.replace(result=call["value"]) if here else call

        return Repair(f"leave the tensor on the graph at {self.operation}", Seam.CUT, change)


@dataclass(frozen=True, kw_only=True)
class InPlace:
    """A call in the user's code that changed a tensor in place."""

    operation: str
    shape: tuple[int, ...]
    where: Place | None


@dataclass(frozen=True, kw_only=True)
class KeptTensor:
    """An attribute of the model or the trainer that holds part of the step's graph after the step."""

    name: str
    where: Place | None
    """The user's line that assigns it."""
    several: bool = False
    """It is a tuple or list of tensors."""
    of_trainer: bool = False
    """It is the trainer's, which may keep one for its own use; False: the model's, or a variable."""


@dataclass(frozen=True, kw_only=True)
class PlainList:
    """A plain list, tuple or dictionary of layers that are called and get gradients but are not registered."""

    name: str
    kind: str
    modules: int
    parameters: int
    where: Place | None


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
    """Seen between the model's input and the loss."""
    loss_finite: bool = True
    loss_requires_grad: bool = True
    leftover_ratio: float | None = None
    """After a second step: the share of the first batch's gradient still in the gradient; 0 is right."""
    loss_scale: float | None = None
    """What the optimizer divides the gradients by, where the loss is to be multiplied by it for half precision."""
    follows_loss_scale: float | None = None
    """With that scale doubled: by what share of themselves the gradients grow; 1 is right, 0 where the loss is not scaled."""
    accumulated_share: float | None = None
    """The gradient of k micro-batches as training accumulates it, in multiples of their mean; 1 is right."""
    accumulated_batches: int = 1
    """The number of micro-batches k in that measurement."""
    only_last: bool | None = None
    """The accumulated gradient is that of the last micro-batch alone, and the others' gradients differ from it."""
    wiped: tuple[str, ...] = ()
    """Parameters that got a gradient from backward and had none left at their optimizer's step."""
    wiped_passes: int = 0
    """How many backward passes of one line a step makes, each of which is cleared before the next."""
    wiped_at: Place | None = None
    accumulation: int = 1
    user_loss: bool = False
    """A loss function was called by user code itself, or none was called: the loss is written by hand."""
    in_place: tuple[InPlace, ...] = ()
    backwards: tuple[Place | None, ...] = ()
    """The user's line of each call of backward in one step; None: the framework's own."""
    kept: tuple[KeptTensor, ...] = ()
    second_failure: Failure | None = None
    """The exception of the second step, if the first completed."""
    frozen_by_step: tuple[str, ...] = ()
    """In that case, the parameters that the first step left without requires_grad."""
    anomaly: str = ""
    """The function whose backward failed or produced NaN, if anomaly mode reports it."""
    anomaly_at: Place | None = None
    """The user's line that called it."""
    batch_losses: tuple[float, ...] = ()
    """The loss of each of the first batches, with the initial weights."""
    plain_lists: tuple[PlainList, ...] = ()

    @property
    def without(self) -> tuple[GradientOf, ...]:
        """Trainable parameters that got no gradient."""
        return tuple(g for g in self.gradients if g.norm is None)
