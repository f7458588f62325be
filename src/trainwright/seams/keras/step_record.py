"""What the seams recorded during one step of a Keras model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainwright.core import Failure, Place, Stage
from trainwright.seams.keras.layers import Modes
from trainwright.seams.keras.loss import KeptLoss
from trainwright.stages import LossCall, ModuleFacts, Origin


@dataclass(kw_only=True)
class StepRecord:
    """What the seams recorded during one step."""

    failure: Failure | None = None
    failed_stage: Stage | None = None
    error: BaseException | None = None
    failed_module: ModuleFacts | None = None
    modules: list[ModuleFacts] = field(default_factory=list)
    loss_calls: list[LossCall] = field(default_factory=list)
    kept_losses: list[KeptLoss] = field(default_factory=list)
    output: Any = None
    """The model's whole output."""
    loss: float | None = None
    gradients: list[Any] | None = None
    trained: list[Any] = field(default_factory=list)
    """The variables of the gradients."""
    applied: set[str] = field(default_factory=set)
    """For a model with its own step: the attributes of the optimizers that received gradients."""
    unlisted: list[Any] = field(default_factory=list)
    """Layers with weights that were called but that the model does not track."""
    unlisted_at: list[Place | None] = field(default_factory=list)
    """The user's lines that called them."""
    cuts: list[Place] = field(default_factory=list)
    """The user's lines that detached a tensor from the graph."""
    discrete: list[tuple[str, Place]] = field(default_factory=list)
    """The user's calls of step functions, through which no gradient passes."""
    non_finite_from: Origin | None = None
    modes: Modes | None = None
    """The mode in which training-only layers were called."""
