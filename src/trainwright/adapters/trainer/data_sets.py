"""Facts about a Trainer's datasets: both splits, the tokenizer, other data in the script, unusable rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.labels import alignment_of, label_copy_of, label_sources
from trainwright.adapters.data.numbering import renumbered
from trainwright.adapters.data.odd_rows import RowStep, Step, try_extremes, try_unusable
from trainwright.adapters.data.reading import length, objects_in_scope, read_split
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.adapters.data.texts import cut_texts, text_facts, tokenizer_facts
from trainwright.adapters.torch.called_model import accepted_names
from trainwright.adapters.trainer import setup
from trainwright.adapters.trainer.training import TrainerTraining
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.transfer import transfer_of
from trainwright.probes.splits.two_sets import between
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import quiet
from trainwright.seams.torch.watch import Observer
from trainwright.stages.dataset import DatasetFacts, Lookalike, SplitFacts
from trainwright.tensors.torch import objects as tensors

_TOKENS = "input_ids"


def measure_dataset(training: TrainerTraining, frame: FrameType) -> DatasetFacts:
    """Read a sample of the data and count its labels."""
    trainer = training.trainer
    names = list(dict.fromkeys([*trainer.label_names, "labels", "label", "label_ids"]))
    accepts = accepted_names(training.trainer.model)[0]
    read = read_split("train", trainer.train_dataset)
    train = measure_split(read, names, accepts)
    data = training.evaluation_set()
    held = read_split("evaluation", data) if data is not None else None
    evaluation = measure_split(held, names, accepts) if held else None
    passed = [trainer.train_dataset, trainer.eval_dataset, data]
    alignment = alignment_of(read, train, accepts)
    batch_size = trainer.args.train_batch_size
    return DatasetFacts(
        train=try_extremes(train, accepts, batch_size, _step_on(training, train)),
        evaluation=evaluation,
        accepts=accepts,
        alignment=alignment,
        aligned_source=aligned_source(read, train, alignment, accepts, training.scope),
        renumbered=renumbered(read, held, training.scope),
        evaluation_alignment=alignment_of(held, evaluation, accepts) if held and evaluation else None,
        label_copy=label_copy_of(read, train, accepts),
        lookalikes=tuple(_lookalikes(training)),
        tokenizer=tokenizer_facts(training.tokenizer(), training.scope),
        shuffles=_shuffles(training),
        drops_last=trainer.args.dataloader_drop_last,
        batch_size=trainer.args.train_batch_size,
        repetition=repetition_of(trainer.train_dataset, read, train),
        sources=tuple(label_sources(train, evaluation, held, training.scope, passed)),
        texts=text_facts(read, training.tokenizer()),
        cut_texts=cut_texts(trainer.train_dataset, training.tokenizer(), training.scope),
        unusable_rows={
            s.name: try_unusable(s, accepts, batch_size, _step_on(training, s))
            for s in (train, evaluation)
            if s is not None
        },
        label_place=setup.label_place(frame, train.labels.column if train.labels else ""),
        transfer=transfer_of(read, train, held, evaluation, accepts),
        **between(read, train, held, evaluation, accepts),
    )


def _lookalikes(training: TrainerTraining) -> Iterator[Lookalike]:
    """Objects in scope with the rows of a passed set, or under its key in another dictionary, and with other columns."""
    passed = {"train": training.trainer.train_dataset, "evaluation": training.evaluation_set()}
    named = list(objects_in_scope(training.scope))
    for split, data in passed.items():
        columns = getattr(data, "column_names", None)
        if columns is None or (count := length(data)) is None:
            continue
        keys = {_key(n.expression) for n in named if n.value is data} - {""}
        for name in named:
            other = getattr(name.value, "column_names", None)
            if isinstance(other, list) and name.value is not data:
                same_rows = length(name.value) == count
                if same_rows or _key(name.expression) in keys:
                    yield Lookalike(expression=name.expression, columns=tuple(other), split=split, same_rows=same_rows)


def _key(expression: str) -> str:
    """The key with its brackets, of a member of a dictionary."""
    return "".join(expression.partition("[")[1:])


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
