"""A copy of a Trainer without logging or callbacks."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from transformers.trainer_callback import CallbackHandler, DefaultFlowCallback

if TYPE_CHECKING:
    from trainwright.adapters.trainer.training import TrainerTraining


def copy_of_trainer(training: TrainerTraining) -> Any:
    trainer = copy.copy(training.original)
    trainer.args = copy.copy(training.original.args)
    for name, value in {
        "dataloader_num_workers": 0,
        "dataloader_persistent_workers": False,
        "dataloader_prefetch_factor": None,
    }.items():
        object.__setattr__(trainer.args, name, value)
    trainer.state = copy.deepcopy(training.original.state)
    trainer.control = copy.copy(training.original.control)
    trainer.callback_handler = CallbackHandler(
        [DefaultFlowCallback()], trainer.model, getattr(trainer, training.tokenizer_name), None, None
    )
    trainer.log = lambda *args, **kwargs: None
    trainer.__dict__.pop("_eval_dataloaders", None)
    return trainer


def enable_checkpointing(training: TrainerTraining) -> None:
    args, model = training.trainer.args, training.trainer.model
    for name in ("activation_checkpointing", "gradient_checkpointing"):
        if getattr(args, name, False) and hasattr(model, f"{name}_enable"):
            getattr(model, f"{name}_enable")()
            break
