"""Steps of a Trainer on the extreme rows of its sets: training steps, and evaluation steps on evaluation rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from trainwright.adapters.data.odd_rows import RowStep
from trainwright.adapters.data.reading import as_mapping
from trainwright.adapters.data.source_cells import with_cells
from trainwright.adapters.torch.sampler import draws_every_row
from trainwright.adapters.torch.worst_rows import listed, try_rows_of
from trainwright.adapters.trainer.data_sets import step_on_set
from trainwright.adapters.trainer.training import TrainerTraining
from trainwright.seams.failures.blame import failure_of, tolerated
from trainwright.seams.listening.seen import quiet
from trainwright.stages import DatasetFacts, OddRowFacts, SplitFacts
from trainwright.tensors.items import reader_of
from trainwright.tensors.torch import objects as tensors


def try_rows(training: TrainerTraining, dataset: DatasetFacts, seconds: float) -> OddRowFacts:
    """What steps on the extreme rows come to."""
    readings, bad = {}, []
    sets = list(_sets(training, dataset))
    for data, facts in sets:
        evaluated = facts.name != "train"
        args = training.trainer.args
        reading, found = try_rows_of(
            data,
            facts,
            _Stepping(training, data, evaluated=evaluated),
            seconds / len(sets),
            batch_size=args.eval_batch_size if evaluated else args.train_batch_size,
            workers=args.dataloader_num_workers,
            evaluated=evaluated,
        )
        readings[facts.name] = reading
        bad += found
    by_name = {facts.name: data for data, facts in sets}
    return with_cells(
        OddRowFacts(readings=readings, bad=tuple(bad)),
        training.scope,
        lambda name, row: as_mapping(reader_of(by_name[name])(row)),
    )


def _sets(training: TrainerTraining, dataset: DatasetFacts) -> Iterator[tuple[Any, SplitFacts]]:
    """The sets all of whose rows are drawn."""
    train, held = training.trainer.train_dataset, training.evaluation_set()
    if train is not None and _draws_every_row(training, train):
        yield train, dataset.train
    if held is not None and dataset.evaluation is not None:
        yield held, dataset.evaluation


def _draws_every_row(training: TrainerTraining, data: Any) -> bool:
    if not hasattr(data, "__len__"):
        return True
    with tolerated(), quiet():  # a loader that cannot be built is reported by the batch stage
        return draws_every_row(training.loader(evaluation=False))
    return False


class _Stepping:
    """A step on items of a set."""

    def __init__(self, training: TrainerTraining, data: Any, *, evaluated: bool) -> None:
        self.training, self.data, self.evaluated = training, data, evaluated

    def __call__(self, items: Any) -> RowStep | None:
        chosen = listed(items, self.data)
        if hasattr(self.data, "select") and not items.kept:
            chosen = tensors.choose_rows(self.data, items.rows)
        return self._evaluate(chosen) if self.evaluated else step_on_set(self.training, chosen)

    def _evaluate(self, chosen: Any) -> RowStep | None:
        training, trainer = self.training, self.training.trainer
        training.reset()
        try:
            with training.ready(0), quiet(), torch.no_grad():
                trainer.model.eval()
                batch = next(iter(trainer.get_eval_dataloader(chosen)))
                loss = trainer.prediction_step(trainer.model, dict(training.mended_batch(batch)), False)[0]
        except Exception as error:  # the user's data or evaluation raised, which is a finding
            return RowStep(failure=str(failure_of(error)))
        finally:
            training.reset()
        return RowStep(loss=float(loss) if loss is not None else 0.0)
