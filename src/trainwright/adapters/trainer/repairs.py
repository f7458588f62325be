"""Repairs of a Trainer's inputs: its model, datasets, collator, metrics and arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import transformers

from trainwright.adapters.trainer import setup
from trainwright.core import Call, Repair, Seam
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.tensors.torch import objects as tensors

# Before transformers 4.46, the Trainer stored it as its tokenizer.
_TOKENIZER_NAMES = ("processing_class", "tokenizer")


def find_tokenizer(trainer: Any, scope: Mapping[str, Any]) -> Any:
    """The Trainer's tokenizer, its collator's, or one in the script's scope."""
    inner = getattr(trainer.data_collator, "tokenizer", None)
    own = getattr(trainer, _tokenizer_name(trainer))
    known = (v for v in (own, inner, *scope.values()) if isinstance(v, transformers.PreTrainedTokenizerBase))
    return next(known, None)


def change_parts(trainer: Any, repair: Repair, scope: Mapping[str, Any]) -> None:
    """Change a Trainer's parts.

    Args:
        scope: the script's names.
    """
    roles = {
        "model": "model",
        "train_dataset": "train_dataset",
        "eval_dataset": "eval_dataset",
        "collator": "data_collator",
        "metrics": "compute_metrics",
        "tokenizer": _tokenizer_name(trainer),
        "label_names": "label_names",
    }
    given = {role: getattr(trainer, name) for role, name in roles.items()}
    given["tokenizer"] = find_tokenizer(trainer, scope)
    given |= {"arguments": trainer.args, "ignored_arguments": {}}
    changed = apply_repair(repair, Call(seam=Seam.TRAINER, given=given, tensors=tensors, scope=scope))
    for role, name in roles.items():
        if changed[role] is not given[role]:
            setattr(trainer, name, changed[role])
    for method, names in dict(changed["ignored_arguments"]).items():
        setattr(trainer, method, setup.without_arguments(trainer, method, names))
    trainer._signature_columns = None


def _tokenizer_name(trainer: Any) -> str:
    """The attribute in which a Trainer stores its tokenizer."""
    own = next(k for k in type(trainer).__mro__ if k.__module__ == "transformers.trainer")
    return next(n for n in _TOKENIZER_NAMES if n in inspect.signature(own).parameters)
