"""Repairs of fit's inputs: the model, the datasets, how batches are formed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.failures.repair_log import mended
from trainwright.tensors.keras import objects as tensors

Changing = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Changed:
    """What a repair has left of the inputs, and its changes of each batch."""

    data: FitData
    drops_last: bool
    changes: list[Changing]


def change_parts(repair: Repair, model: Any, data: FitData, drops_last: bool, scope: Mapping[str, Any]) -> Changed:
    """The parts of a training as a repair leaves them; the model is changed in place."""
    arguments = SimpleNamespace(dataloader_drop_last=drops_last)
    given = {
        "model": model,
        "train_dataset": data,
        "eval_dataset": data.validation,
        "collator": same_items,
        "metrics": None,
        "arguments": arguments,
    }
    call = mended(repair, Call(seam=Seam.TRAINER, given=given, tensors=tensors, scope=scope))
    trained: FitData = call["train_dataset"]
    changed = trained if call["eval_dataset"] is data.validation else trained.validated_on(call["eval_dataset"])
    change = None if call["collator"] is same_items else call["collator"].change
    changes: list[Changing] = [] if change is None else [lambda view: change(dict(view))]
    return Changed(data=changed, drops_last=arguments.dataloader_drop_last, changes=changes)


def same_items(items: Any) -> Any:
    """A collator that returns the batch unchanged."""
    return items
