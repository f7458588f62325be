"""What a Trainer's script holds in addition to the Trainer and its model, saved so that the walk can restore it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from trainwright.seams.state.reachable import ScriptState
from trainwright.seams.state.snapshot import AttributeState
from trainwright.seams.torch.state import ModelState


def script_state(trainer: Any) -> ScriptState:
    """All user objects that the Trainer's calls can reach; the adapter restores the model itself."""
    model = trainer.model
    frameworks = [m for m in model.modules() if type(m).__module__.startswith(("torch.", "transformers."))]
    values = [*model.parameters(), *model.buffers()]
    parts = [getattr(trainer, name, None) for name in _PARTS]
    return ScriptState([*parts, trainer, model], leave=[*frameworks, *values])


_PARTS = ("train_dataset", "eval_dataset", "data_collator", "compute_metrics", "preprocess_logits_for_metrics",
          "compute_loss_func", "model_init", "optimizer", "lr_scheduler")  # fmt: skip


class FurtherModels:
    """Models other than the trained one (a teacher, a discriminator), and tensors that only the optimizer holds."""

    def __init__(self, models: Sequence[Any], trainer: Any) -> None:
        known = {id(m) for m in trainer.model.modules()}
        self._states = []
        for model in models:
            if id(model) in known:
                continue
            known |= {id(m) for m in model.modules()}
            self._states.append((AttributeState(model.modules()), ModelState(model)))
        own = {id(p) for p in trainer.model.parameters()}
        groups = trainer.optimizer.param_groups if trainer.optimizer is not None else ()
        foreign = [p for g in groups for p in g["params"] if id(p) not in own]
        self._foreign = [(p, p.detach().clone(), None if p.grad is None else p.grad.clone()) for p in foreign]

    @torch.no_grad()
    def put_back(self) -> None:
        """Restore their attributes, values, gradients and modes."""
        for attributes, state in self._states:
            attributes.put_back()
            state.put_back()
        for tensor, value, gradient in self._foreign:
            tensor.copy_(value)
            tensor.grad = gradient
