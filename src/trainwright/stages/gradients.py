"""Stage 5, gradients: what reaches each parameter."""

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
    """A call in the user's code that takes a tensor off the graph: detach, data, item, numpy, argmax."""

    operation: str
    """As it is written; no_grad for a module that was called while gradients were off."""
    where: Place | None
    upstream: tuple[str, ...] = ()
    """Names of the trainable parameters that the tensor was computed from."""
    updates_before: int = 0
    """How often an optimizer had been stepped by then."""
    restores: bool = False
    """Without it a step gave gradients to parameters that get none with it."""

    def left_out(self) -> Repair | None:
        """Leave the tensor on the graph there; None where its value cannot carry a gradient."""
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
    """An attribute of the model, or of the trainer, that holds a part of the step's graph after the step."""

    name: str
    where: Place | None
    """The user's line that assigns it."""
    several: bool = False
    """It is a tuple or list of tensors."""
    of_trainer: bool = False
    """It is the trainer's, which may keep one for its own use; False: the model's, or a variable."""


@dataclass(frozen=True, kw_only=True)
class PlainList:
    """A plain list, tuple or dictionary of layers: called, given gradients, and registered nowhere."""

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
    """Of all parameters together, before clipping."""
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
    """The k of that measurement."""
    only_last: bool | None = None
    """What was accumulated is the last micro-batch's gradient alone, while those of the others differ."""
    wiped: tuple[str, ...] = ()
    """Parameters that backward gave a gradient, which was gone when their optimizer was to step."""
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
    """What the second step raised where the first went through."""
    frozen_by_step: tuple[str, ...] = ()
    """Parameters that the first step then left without requires_grad."""
    anomaly: str = ""
    """The function whose backward failed or gave NaN, where anomaly mode tells it."""
    anomaly_at: Place | None = None
    """The user's line that called it."""
    batch_losses: tuple[float, ...] = ()
    """The loss of each of the first batches, at the weights of the start."""
    plain_lists: tuple[PlainList, ...] = ()

    @property
    def without(self) -> tuple[GradientOf, ...]:
        """Trainable parameters that no gradient reached."""
        return tuple(g for g in self.gradients if g.norm is None)
