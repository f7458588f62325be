"""Repairs of fit's inputs: the model, the datasets, how batches are formed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.failures.repair_log import mended
from trainwright.tensors.keras import objects as tensors

if TYPE_CHECKING:
    from trainwright.adapters.keras.training import Changing, FitTraining


def change_parts(fit: FitTraining, repair: Repair, changes: list[Changing]) -> None:
    data, arguments = fit.data, SimpleNamespace(dataloader_drop_last=fit.drops_last)
    given = {
        "model": fit.model,
        "train_dataset": data,
        "eval_dataset": data.validation,
        "collator": same_items,
        "metrics": None,
        "arguments": arguments,
    }
    call = mended(repair, Call(seam=Seam.TRAINER, given=given, tensors=tensors, scope=fit.scope))
    fit.drops_last = arguments.dataloader_drop_last
    if call["train_dataset"] is not data:
        fit.data = call["train_dataset"]
    if call["eval_dataset"] is not data.validation:
        fit.data = fit.data.validated_on(call["eval_dataset"])
    if call["collator"] is not same_items:
        change = call["collator"].change
        changes.append(lambda view: change(dict(view)))


def same_items(items: Any) -> Any:
    """A collator that returns the batch unchanged."""
    return items
