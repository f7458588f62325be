"""What the seams recorded during one step of a torch model, and the scores in its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from trainwright.core import Failure, Place, Stage
from trainwright.seams.torch.all_pairs import Pairing
from trainwright.seams.torch.loss import KeptLoss
from trainwright.stages import LossCall, LossTerm, ModuleFacts, Origin, Renormalised


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
    """The tensors of those calls, in order; only with detail, or where losses alone are kept."""
    loss_shares: list[float | None] = field(default_factory=list)
    """The factor with which each of those calls entered the minimized loss."""
    loss_terms: list[LossTerm] = field(default_factory=list)
    """What was added up to it; only with detail."""
    output: Any = None
    """The model's whole output."""
    scores: torch.Tensor | None = None
    """The scores: the output's logits, otherwise the input of the last loss call."""
    loss: float | None = None
    loss_tensor: torch.Tensor | None = None
    minimised: list[float] = field(default_factory=list)
    """The value of every tensor that backward was called on, in order."""
    loss_at: Place | None = None
    is_training: bool = True
    """Whether the model was in training mode."""
    modes: dict[str, bool] = field(default_factory=dict)
    non_finite_from: Origin | None = None
    targets: torch.Tensor | None = None
    """Those of the last loss call."""
    renormalised: list[Renormalised] = field(default_factory=list)
    """Calls of softmax or log_softmax, outside the model, on a softmax's output; only with detail."""
    broadcasts: list[Pairing] = field(default_factory=list)
    """Operations that broadcast outputs and targets to all pairs; only with detail."""


def scores_of(output: Any) -> torch.Tensor | None:
    """The scores in a model's output: its logits, otherwise its first tensor with more than one number."""
    if isinstance(output, Mapping):
        if isinstance(output.get("logits"), torch.Tensor):
            return output["logits"]
        output = [v for k, v in output.items() if k != "loss"]
    if isinstance(output, torch.Tensor):
        return output if output.dim() else None
    if isinstance(output, (list, tuple)):
        return next((v for v in output if isinstance(v, torch.Tensor) and v.dim()), None)
    return None
