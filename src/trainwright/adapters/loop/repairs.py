"""Applies repairs to a handwritten training loop's batches, loaders and model, which have no Trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from trainwright.adapters.loop.named_rows import (
    NamedRows,
    NamedStream,
    UnnamedRows,
    UnnamedStream,
    around,
    put_dataset,
)
from trainwright.adapters.loop.parts import follow_parameters
from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.called_model import take_rows
from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.listening.seen import quiet

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining


def apply_to_training(training: LoopTraining, repair: Repair) -> None:
    """Change parts of the training: its model, its datasets, how its batches are formed."""
    loader = training.loaders[0] if training.loaders else None
    model = training.known_parts.model if training.known_parts is not None else None
    names = dict(model.named_parameters()) if model is not None else {}
    formed = bool(training.drawn)
    streamed = isinstance(getattr(loader, "dataset", None), torch.utils.data.IterableDataset)
    named, unnamed = (NamedStream, UnnamedStream) if streamed else (NamedRows, UnnamedRows)
    data = named(loader.dataset, training.item_names) if loader is not None else None
    other = next((v for _, v in training.evaluation_loaders()), None)
    held = NamedRows(other.dataset, training.item_names) if other is not None else None
    given = {
        "model": model,
        "train_dataset": data,
        "eval_dataset": held,
        "collator": dict if formed else getattr(loader, "collate_fn", None),
        "tokenizer": training.tokenizer(),
        "metrics": None,
        "label_names": [],
        "arguments": training.arguments,
        "ignored_arguments": {},
    }
    with quiet():
        changed = mended(repair, training.call(Seam.TRAINER, given))
    training.state.before_change(around(loader))
    if changed["collator"] is not given["collator"] and formed:
        collate = changed["collator"]
        kept = Repair(repair.does, Seam.BATCH, lambda call: Call(seam=Seam.BATCH, given=collate(dict(call.given))))
        training.active.kept.append(kept)
    elif changed["collator"] is not given["collator"]:
        training.collating.append(repair)
    if changed["train_dataset"] is not data and loader is not None:
        put_dataset(loader, unnamed(changed["train_dataset"], loader.dataset, training.item_names))
    if changed["eval_dataset"] is not held and other is not None:
        put_dataset(other, UnnamedRows(changed["eval_dataset"], other.dataset, training.item_names))
    if model is not None:
        follow_parameters(training.optimizers, names, model)
    training.state.take_in()


def translated(training: LoopTraining, turn: Turn) -> list[Repair]:
    """The repairs in force; repairs of batches are applied to the inputs of the model and the loss."""
    repairs = training.active.all
    of_batches = [r for r in repairs if r.seam == Seam.BATCH]
    if not of_batches and turn.rows is None:
        return repairs
    before = training.view(replace(turn, rows=None))
    after = dict(take_rows(before, turn.rows) if turn.rows is not None else before)
    for repair in of_batches:
        after = dict(mended(repair, training.call(Seam.BATCH, after)).given)
    return [*exchange_batch(before, after), *(r for r in repairs if r.seam != Seam.BATCH)]


def exchange_batch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Repair]:
    """Give the model and the loss another batch in the place of one, wherever they are given its values."""
    pairs = [(before[k], after[k]) for k in before if k in after and before[k] is not after[k]]

    def inputs(call: Call) -> Call:
        given = call["inputs"]
        if isinstance(given, Mapping):
            return call.replace(inputs={k: _exchanged(v, pairs) for k, v in given.items()})
        return call.replace(inputs=tuple(_exchanged(v, pairs) for v in given))

    def targets(call: Call) -> Call:
        return call.replace(targets=_exchanged(call["targets"], pairs))

    return [
        Repair("give the model the batch", Seam.FORWARD, inputs),
        Repair("give the loss the batch", Seam.LOSS, targets),
    ]


def _exchanged(value: Any, pairs: Sequence[tuple[Any, Any]]) -> Any:
    if isinstance(value, torch.Tensor):
        for before, after in pairs:
            if isinstance(before, torch.Tensor) and before.shape == value.shape and torch.equal(before, value.detach()):
                return after
    return value
