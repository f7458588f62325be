"""Repairs of a `fit`, put in force at its door: of its parts before it begins, of the calls in each of its steps."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.training import FitTraining, same_items
from trainwright.core import Call, PartMissing, Repair, Seam
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.seams.listening.seen import quiet
from trainwright.tensors.keras import objects as tensors


class RepairedFit:
    """A training by `fit` with repairs in force, from before its data are read to its end."""

    def __init__(self, fit: FitTraining, repairs: Sequence[Repair]) -> None:
        self._fit = fit
        self._observing = contextlib.ExitStack()
        with quiet():
            for repair in repairs:
                fit.try_to_build()
                with tolerated(), contextlib.suppress(PartMissing, KeyError):  # it has no such part: it is not mended
                    _put_in_force(repair, fit)
        fit.keep_start()

    def begin_step(self, *, training: bool = True) -> None:
        """Steps follow, whose calls are changed: a batch of training, or with training=False those of an evaluation."""
        self.end()
        self._observing.enter_context(self._fit.observer(detail=False, training=training))

    def end(self) -> None:
        """Let calls pass as they are."""
        self._observing.close()


def _put_in_force(repair: Repair, fit: FitTraining) -> None:
    if repair.seam == Seam.BATCH:
        fit.data = fit.data.batches_changed(lambda view: _mend_batch(repair, view))
    elif repair.seam in (Seam.TRAINER, Seam.OPTIMIZER):
        fit.data = _with_parts(fit.data, fit.change_parts(repair))
    else:
        fit.active.kept.append(repair)


def _with_parts(data: FitData, parts: Call) -> FitData:
    """The data of a training whose parts a repair has changed."""
    changed: FitData = parts["train_dataset"]
    if parts["eval_dataset"] is not data.validation:
        changed = changed.validated_on(parts["eval_dataset"])
    if parts["arguments"].dataloader_drop_last:
        changed = changed.whole_batches()
    return changed if parts["collator"] is same_items else changed.batches_changed(parts["collator"].change)


def _mend_batch(repair: Repair, view: dict[str, Any]) -> dict[str, Any]:
    return dict(apply_repair(repair, Call(seam=Seam.BATCH, given=view, tensors=tensors)).given)
