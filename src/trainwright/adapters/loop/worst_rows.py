"""Steps of a loop on the extreme rows of its sets, and the loop's own evaluation on evaluation rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.adapters.data.odd_rows import MOST_ROWS, RowStep, TriedSet, try_worst_rows
from trainwright.adapters.data.reading import as_mapping
from trainwright.adapters.data.source_cells import with_cells
from trainwright.adapters.loop import evaluation
from trainwright.adapters.loop.sliced_rows import Columns, step_on_columns
from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.sampler import draws_every_row
from trainwright.adapters.torch.worst_rows import try_rows_of
from trainwright.seams.failures.blame import failure_of, passed_on
from trainwright.stages import BadRow, DatasetFacts, OddRowFacts, Reading
from trainwright.tensors.items import reader_of

Found = tuple[Reading, list[BadRow]]


def try_rows(training: LoopTraining, data: Any, dataset: DatasetFacts, seconds: float) -> OddRowFacts:
    """What steps on the extreme rows come to.

    Args:
        data: the training set that the dataset stage read.
    """
    asked: dict[str, Callable[[float], Found]] = {}
    loader, held = training.loaders[0] if training.loaders else None, None
    if isinstance(data, Columns) and not data.drawn:
        asked["train"] = lambda time: _of_columns(training, data, dataset, time)
    elif loader is not None and not training.body.draws and _draws_every_row(loader):
        asked["train"] = lambda time: _of_loader(_Stepping(training, loader), dataset.train, time)
        held = next((v for _, v in training.evaluation_loaders() if v.dataset is not loader.dataset), None)
        if held is not None and (evaluated := dataset.evaluation) is not None:
            asked["evaluation"] = lambda time: _of_loader(_Stepping(training, held, evaluated=True), evaluated, time)
    found = {name: ask(seconds / len(asked)) for name, ask in asked.items()}
    facts = OddRowFacts(
        readings={name: reading for name, (reading, _) in found.items()},
        bad=tuple(row for _, rows in found.values() for row in rows),
    )
    sets = {"train": data, "evaluation": held.dataset if held is not None else None}
    return with_cells(facts, training.scope, lambda name, row: as_mapping(reader_of(sets[name])(row)))


def _draws_every_row(loader: Any) -> bool:
    return not hasattr(loader.dataset, "__getitem__") or draws_every_row(loader)


def _of_columns(training: LoopTraining, data: Columns, dataset: DatasetFacts, seconds: float) -> Found:
    facts = dataset.train
    tried = TriedSet(
        name="train",
        odd=facts.odd,
        others=range(len(data)),
        batch_size=MOST_ROWS,
        step=lambda rows: step_on_columns(training, data, rows),
    )
    return Reading(read=facts.read, rows=facts.rows), try_worst_rows(tried, seconds)


def _of_loader(stepping: _Stepping, facts: Any, seconds: float) -> Found:
    loader = stepping.loader
    return try_rows_of(
        loader.dataset,
        facts,
        stepping.step,
        seconds,
        batch_size=loader.batch_size or MOST_ROWS,
        workers=loader.num_workers,
        evaluated=stepping.evaluated,
        confirm=stepping.evaluate if stepping.evaluated else None,
    )


@dataclass(frozen=True)
class _Stepping:
    """Steps on items of a loader's set."""

    training: LoopTraining
    loader: Any
    evaluated: bool = False

    def step(self, items: Sequence[Any]) -> RowStep | None:
        """The loop's step on these items."""
        training = self.training
        batch = self._collated(items)
        if isinstance(batch, RowStep):
            return batch
        training.reset()
        with training.ready(0):
            record, _ = training.observe(Turn(0, item=training.body.with_batch(training.items[0], batch)))
        training.reset()
        return RowStep(failure=str(record.failure) if record.failure is not None else "", loss=record.loss)

    def evaluate(self, items: Sequence[Any]) -> RowStep | None:
        """The user's own evaluation, whose loader gives these items as its only batch."""
        batch = self._collated(items)
        if isinstance(batch, RowStep):
            return batch
        with _giving(self.loader, batch):
            failure = evaluation.measure(self.training, 1).metrics_failure
        return RowStep(failure=str(failure) if failure is not None else "")

    def _collated(self, items: Sequence[Any]) -> Any:
        try:
            rows = [items[i] for i in range(len(items))]
            return passed_on(self.loader.collate_fn, rows)
        except Exception as error:  # the user's data or collator raised, which is a finding
            return RowStep(failure=str(failure_of(error)))


@contextlib.contextmanager
def _giving(loader: Any, batch: Any) -> Iterator[None]:
    """Let a loader give this batch, whatever it draws."""
    kept = loader.collate_fn
    loader.collate_fn = lambda items: batch
    try:
        yield
    finally:
        loader.collate_fn = kept
