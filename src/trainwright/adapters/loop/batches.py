"""The first batches of a training loop: drawn as the loop draws them, and tried with other rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import wrapt

from trainwright.adapters.data.odd_rows import RowStep
from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.batches import POOLED, RecordingCollator
from trainwright.core import Failure, Repair, Seam
from trainwright.seams.failures.blame import failure_of, passed_on
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.isolation.silence import muted
from trainwright.seams.listening.seen import quiet
from trainwright.seams.listening.torch_patches import loader_of, watching_loaders
from trainwright.seams.state.snapshot import seed_everything
from trainwright.seams.torch.stacking import watching_stacks
from trainwright.tensors.items import reader_of

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining


def form_pool(training: LoopTraining) -> tuple[Failure | None, RecordingCollator | None]:
    """Draw the first batches; returns what the user's loader raised, and the collator that recorded the rows."""
    training.reset()
    training.drawn, training.views = None, {}
    drawn: list[Any] = []
    failure = None
    with drawing(training) as collators:
        try:
            for item in training.body.items():
                drawn.append(item)
                if len(drawn) == POOLED:
                    break
        except Exception as error:  # the user's data or collator raised, which is a finding
            failure = failure_of(error)
    training.drawn = drawn
    return failure, collators[-1] if collators else None


@contextlib.contextmanager
def drawing(training: LoopTraining) -> Iterator[list[RecordingCollator]]:
    """Draw batches inside as the loop draws them, without workers; yields the collators of the loaders that begin."""
    collators: list[tuple[Any, Any]] = []
    recorders: list[RecordingCollator] = []
    workers: list[tuple[Any, int]] = []

    def begun(loader: Any) -> None:
        if not any(known is loader for known in training.loaders):
            training.loaders.append(loader)
        recorder = RecordingCollator(mended_collator(training, loader.collate_fn))
        collators.append((loader, loader.collate_fn))
        recorders.append(recorder)
        workers.append((loader, loader.num_workers))
        loader.collate_fn, loader.num_workers = recorder, 0

    def batch(iterator: Any, draw: Any) -> Any:
        loader = loader_of(iterator)  # started before the loop: it = iter(loader)
        if loader is not None and not any(known is loader for known in training.loaders):
            training.loaders.append(loader)
        return draw()

    seed_everything(1)
    try:
        with quiet(), muted(), watching_loaders(begun, batch):
            yield recorders
    finally:
        for loader, collator in collators:
            loader.collate_fn = collator
        for loader, count in workers:
            loader.num_workers = count
        training.body.start_over()


def mended_collator(training: LoopTraining, collator: Any) -> Any:
    """A loader's collate function with the collation repairs in force."""
    for repair in training.collating:
        given = {"model": None, "train_dataset": None, "collator": collator, "tokenizer": training.tokenizer()}
        collator = mended(repair, training.call(Seam.TRAINER, given))["collator"]
    stacking = [r for r in training.active.all if r.seam == Seam.STACK]
    return _Restacking(training, collator, stacking[0]) if stacking else collator


class _Restacking(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """Forms batches with another collate function, first changing rows that it cannot stack into one tensor."""

    def __init__(self, training: LoopTraining, collator: Any, repair: Repair) -> None:
        super().__init__(collator)
        self._self_training, self._self_repair = training, repair

    def __call__(self, items: list[Any]) -> Any:
        with watching_stacks(self._changed):
            return passed_on(self.__wrapped__, items)

    def _changed(self, rows: Any) -> Any:
        return mended(self._self_repair, self._self_training.call(Seam.STACK, {"rows": rows}))["rows"]


def step_on_rows(training: LoopTraining, rows: Sequence[int]) -> RowStep | None:
    """A step on these rows of the loader's dataset; None if the loop does not iterate over a loader's batches."""
    loader = training.loaders[0] if training.loaders else None
    if loader is None or training.body.draws or not hasattr(loader.dataset, "__getitem__"):
        return None
    try:
        batch = loader.collate_fn([passed_on(reader_of(loader.dataset), row) for row in rows])
    except Exception as error:  # the user's data or collator raised, which is a finding
        return RowStep(failure=str(failure_of(error)))
    training.reset()
    with training.ready(0):
        record, _ = training.observe(Turn(0, item=training.body.with_batch(training.items[0], batch)))
    training.reset()
    return RowStep(failure=str(record.failure) if record.failure is not None else "", loss=record.loss)
