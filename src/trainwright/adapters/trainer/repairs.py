"""Repairs of a Trainer's inputs: its model, datasets, collator, metrics and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.adapters.trainer import setup
from trainwright.core.repair import Repair, Seam
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import AttributeState
from trainwright.seams.torch.state import ModelState

if TYPE_CHECKING:
    from trainwright.adapters.trainer.training import TrainerTraining


def apply_to_trainer(training: TrainerTraining, repair: Repair) -> None:
    trainer = training.trainer
    roles = {
        "model": "model",
        "train_dataset": "train_dataset",
        "eval_dataset": "eval_dataset",
        "collator": "data_collator",
        "metrics": "compute_metrics",
        "tokenizer": training.tokenizer_name,
        "label_names": "label_names",
    }
    given = {role: getattr(trainer, name) for role, name in roles.items()}
    given["tokenizer"] = training.tokenizer()
    given["arguments"] = trainer.args
    given["ignored_arguments"] = training.ignored_arguments
    with quiet():
        changed = mended(repair, training.call(Seam.TRAINER, given))
    for role, name in roles.items():
        if changed[role] is not given[role]:
            setattr(trainer, name, changed[role])
    training.ignored_arguments = changed["ignored_arguments"]
    for method, names in training.ignored_arguments.items():
        if method != "log":  # the training logs nothing
            setattr(trainer, method, setup.without_arguments(trainer, method, names))
    trainer._signature_columns = None
    training.start = ModelState(trainer.model, known=[training.start])
    training.start_modules = AttributeState(trainer.model.modules())
