"""Repairs of a Trainer's inputs: its model, datasets, collator, metrics and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import transformers

from trainwright.adapters.trainer import setup, versions
from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import AttributeState
from trainwright.seams.torch.state import ModelState
from trainwright.tensors.torch import objects as tensors

if TYPE_CHECKING:
    from trainwright.adapters.trainer.training import TrainerTraining


def apply_to_trainer(training: TrainerTraining, repair: Repair) -> None:
    trainer = training.trainer
    with quiet():
        training.ignored_arguments = change_parts(trainer, repair, training.scope, training.ignored_arguments)
    training.start = ModelState(trainer.model, known=[training.start])
    training.start_modules = AttributeState(trainer.model.modules())


def find_tokenizer(trainer: Any, scope: Mapping[str, Any]) -> Any:
    """The Trainer's tokenizer, its collator's, or one in the script's scope."""
    inner = getattr(trainer.data_collator, "tokenizer", None)
    own = getattr(trainer, versions.tokenizer_name(trainer))
    known = (v for v in (own, inner, *scope.values()) if isinstance(v, transformers.PreTrainedTokenizerBase))
    return next(known, None)


def change_parts(
    trainer: Any, repair: Repair, scope: Mapping[str, Any], ignored: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Change a Trainer's parts; returns the arguments that its methods are not given from then on.

    Args:
        scope: the script's names.
        ignored: arguments that its methods are not given already.
    """
    roles = {
        "model": "model",
        "train_dataset": "train_dataset",
        "eval_dataset": "eval_dataset",
        "collator": "data_collator",
        "metrics": "compute_metrics",
        "tokenizer": versions.tokenizer_name(trainer),
        "label_names": "label_names",
    }
    given = {role: getattr(trainer, name) for role, name in roles.items()}
    given["tokenizer"] = find_tokenizer(trainer, scope)
    given["arguments"] = trainer.args
    given["ignored_arguments"] = ignored or {}
    changed = mended(repair, Call(seam=Seam.TRAINER, given=given, tensors=tensors, scope=scope))
    for role, name in roles.items():
        if changed[role] is not given[role]:
            setattr(trainer, name, changed[role])
    left_out: dict[str, Any] = dict(changed["ignored_arguments"])
    for method, names in left_out.items():
        if method != "log":  # the training logs nothing
            setattr(trainer, method, setup.without_arguments(trainer, method, names))
    trainer._signature_columns = None
    return left_out
