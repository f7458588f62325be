"""Repairs in force in a further run of a script: each changes the calls that pass its door, of the training it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from trainwright.core import Call, PartMissing, Repair, Seam
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.failures.repair_log import apply_repair, was_made
from trainwright.seams.listening.seen import quiet, seen
from trainwright.tensors.torch import objects as tensors

# The parts of a training that only a Trainer names.
_UNNAMED = ("train_dataset", "eval_dataset", "collator", "metrics", "tokenizer", "arguments")


@dataclass(eq=False)
class Repairing:
    """The repairs of a run; an ordinary run has none."""

    repairs: Sequence[Repair] = ()
    training: int = 1
    """The number of the training that they are for."""
    _has_mended: bool = False
    _has_mended_trainer: bool = False

    def list_step(self) -> list[Repair]:
        """Those of calls in a step; a batch is changed as the model is given it."""
        batches = [
            replace(repair, seam=Seam.FORWARD, change=_with_batch(repair))
            for repair in self.repairs
            if repair.seam == Seam.BATCH
        ]
        return [*batches, *(r for r in self.repairs if r.seam != Seam.BATCH)]

    def list_made(self) -> tuple[str, ...]:
        """What those do that have changed a call."""
        return tuple(repair.does for repair in self.repairs if was_made(repair))

    def mend_trainer(self, trainer: Any, scope: Mapping[str, Any]) -> None:
        """Change a Trainer's parts, before it trains."""
        from trainwright.adapters.trainer.repairs import change_parts

        self._has_mended_trainer = True
        for repair in self._list(Seam.TRAINER):
            with tolerated(), quiet():
                try:
                    change_parts(trainer, repair, scope)
                except (PartMissing, KeyError):
                    continue  # it has no such part: the repair is not made

    def mend_parts(self, model: nn.Module, optimizers: Sequence[Any]) -> None:
        """Change the model, and its optimizers with their schedules, before the first step; once."""
        if self._has_mended:
            return
        self._has_mended = True
        for repair in () if self._has_mended_trainer else self._list(Seam.TRAINER):
            named = dict(model.named_parameters())
            given = {"model": model, "label_names": [], "ignored_arguments": {}, **dict.fromkeys(_UNNAMED)}
            _change(repair, Call(seam=Seam.TRAINER, given=given, tensors=tensors))
            _follow_parameters(optimizers, named, model)
        for repair in self._list(Seam.OPTIMIZER):
            for optimizer in optimizers:
                rates = [group["lr"] for group in optimizer.param_groups]
                given = {"optimizer": optimizer, "model": model}
                _change(repair, Call(seam=Seam.OPTIMIZER, given=given, tensors=tensors))
                _scale_schedules(optimizer, rates)

    def _list(self, seam: Seam) -> list[Repair]:
        return [repair for repair in self.repairs if repair.seam == seam]


def _with_batch(repair: Repair) -> Any:
    def change(call: Call) -> Call:
        given = call["inputs"]
        if not isinstance(given, Mapping):
            return call
        changed = repair.change(Call(seam=Seam.BATCH, given=dict(given), tensors=tensors))
        return call.replace(inputs=dict(changed.given))

    return change


def _change(repair: Repair, call: Call) -> None:
    with tolerated(), quiet():
        try:
            apply_repair(repair, call)
        except (PartMissing, KeyError, AttributeError, TypeError):
            return  # the training names no such part: the repair is not made


def _scale_schedules(optimizer: Any, before: Sequence[float]) -> None:
    """Schedules go on from an optimizer's new rates."""
    now = [float(group["lr"]) for group in optimizer.param_groups]
    for schedule in list(seen().schedules):
        if getattr(schedule, "optimizer", None) is optimizer and len(schedule.base_lrs) <= len(now):
            factors = [new / old if old else 1.0 for new, old in zip(now, before)]
            schedule.base_lrs = [base * factor for base, factor in zip(schedule.base_lrs, factors)]


def _follow_parameters(optimizers: Sequence[Any], before: Mapping[str, torch.Tensor], model: nn.Module) -> None:
    """Give optimizers the parameters that replaced others under the same name."""
    now = dict(model.named_parameters())
    replaced = {id(old): now[name] for name, old in before.items() if name in now and now[name] is not old}
    new = [p for name, p in now.items() if name not in before and p.requires_grad]
    trained = {id(p) for p in before.values() if p.requires_grad}
    for optimizer in optimizers:
        groups = optimizer.param_groups
        whole = bool(trained) and trained <= {id(p) for g in groups for p in g["params"]}
        for group in groups:
            group["params"] = [replaced.get(id(p), p) for p in group["params"]]
        if whole:  # it was given all of model.parameters(), of which these are now a part
            groups[0]["params"] = [*groups[0]["params"], *new]
