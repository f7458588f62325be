"""Facts about a Trainer's datasets: both splits, the tokenizer, other data in the script, unusable rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from trainwright.adapters.data.odd_rows import RowStep, Step
from trainwright.adapters.data.reading import length, read_split
from trainwright.adapters.torch.called_model import accepted_names
from trainwright.adapters.torch.measured_sets import ReadSets, measure_sets
from trainwright.adapters.trainer import setup
from trainwright.adapters.trainer.training import TrainerTraining
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import quiet
from trainwright.seams.torch.watch import Observer
from trainwright.stages.dataset import DatasetFacts, SplitFacts
from trainwright.tensors.torch import objects as tensors


def measure_dataset(training: TrainerTraining, frame: FrameType) -> DatasetFacts:
    """Read a sample of the data and count its labels."""
    trainer = training.trainer
    names = list(dict.fromkeys([*trainer.label_names, "labels", "label", "label_ids"]))
    accepts = accepted_names(training.trainer.model)[0]
    data = training.evaluation_set()
    found = measure_sets(
        ReadSets(
            train=read_split("train", trainer.train_dataset),
            held=read_split("evaluation", data) if data is not None else None,
            data={"train": trainer.train_dataset, "evaluation": data},
            label_names=names,
            accepts=accepts,
            scope=training.scope,
            tokenizer=training.tokenizer(),
            batch_size=trainer.args.train_batch_size,
            step_on=lambda facts: _step_on(training, facts),
        )
    )
    return replace(
        found,
        shuffles=_shuffles(training),
        drops_last=trainer.args.dataloader_drop_last,
        label_place=setup.label_place(frame, found.train.labels.column if found.train.labels else ""),
    )


def _shuffles(training: TrainerTraining) -> bool | None:
    """Whether the training loader draws rows in random order; None if that cannot be determined."""
    if length(training.trainer.train_dataset) is None:
        return False
    with tolerated(), quiet():  # a loader that cannot be built is reported by the batch stage
        loader = training.loader(evaluation=False)
        # accelerate's loader has its own SequentialSampler; the batch sampler's is the one in force.
        sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)
        kind = type(sampler).__name__ if sampler is not None else ""
        return None if not kind else "Sequential" not in kind
    return None


def _step_on(training: TrainerTraining, facts: SplitFacts) -> Step:
    """A training step on rows of a set."""
    trainer = training.trainer

    def step(rows: Sequence[int]) -> RowStep:
        data = trainer.train_dataset if facts.name == "train" else training.evaluation_set()
        return step_on_set(training, tensors.choose_rows(data, rows))

    return step


def step_on_set(training: TrainerTraining, data: Any) -> RowStep:
    """A training step on the first batch of another training set."""
    trainer = training.trainer
    kept = trainer.train_dataset
    try:
        trainer.train_dataset = data
        batch, failure, _ = training.first_batch(evaluation=False)
    finally:
        trainer.train_dataset = kept
    if batch is None or failure is not None:
        return RowStep(failure=str(failure))
    training.reset()
    with training.ready(0), Observer(training.wrapped, training.active.all).catching() as record:
        training.compute(batch, record)
    training.reset()
    return RowStep(failure=str(record.failure) if record.failure is not None else "", loss=record.loss)
