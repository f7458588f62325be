"""Facts about a Trainer's datasets: both splits, the tokenizer, other data in the script, unusable rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from types import FrameType

from trainwright.adapters.data.alignment import alignment_of
from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.label_sources import label_sources
from trainwright.adapters.data.reading import length, objects_in_scope, read_split
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.adapters.data.texts import text_facts, tokenizer_facts
from trainwright.adapters.data.unusable_rows import suspicious_rows
from trainwright.adapters.trainer import setup
from trainwright.adapters.trainer.training import TrainerTraining
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.two_sets import between
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import quiet
from trainwright.seams.torch.watch import Observer
from trainwright.stages.dataset import UNTRIED, DatasetFacts, Lookalike, SplitFacts
from trainwright.tensors.torch import objects as tensors

_TOKENS = "input_ids"


def measure_dataset(training: TrainerTraining, frame: FrameType) -> DatasetFacts:
    """Read a sample of the data and count its labels."""
    trainer = training.trainer
    names = list(dict.fromkeys([*trainer.label_names, "labels", "label", "label_ids"]))
    accepts = training.accepts()[0]
    read = read_split("train", trainer.train_dataset)
    train = measure_split(read, names, accepts)
    data = training.evaluation_set()
    held = read_split("evaluation", data) if data is not None else None
    evaluation = measure_split(held, names, accepts) if held else None
    passed = [trainer.train_dataset, trainer.eval_dataset, data]
    alignment = alignment_of(read, train, accepts)
    return DatasetFacts(
        train=train,
        evaluation=evaluation,
        accepts=accepts,
        alignment=alignment,
        aligned_source=aligned_source(read, train, alignment, accepts, training.scope),
        evaluation_alignment=alignment_of(held, evaluation, accepts) if held and evaluation else None,
        lookalikes=tuple(_lookalikes(training)),
        tokenizer=tokenizer_facts(training.tokenizer(), training.scope),
        shuffles=_shuffles(training),
        drops_last=trainer.args.dataloader_drop_last,
        batch_size=trainer.args.train_batch_size,
        repetition=repetition_of(trainer.train_dataset, read, train),
        sources=tuple(label_sources(train, evaluation, held, training.scope, passed)),
        texts=text_facts(read, training.tokenizer()),
        unusable_rows={s.name: _try_rows(training, s) for s in (train, evaluation) if s is not None},
        label_place=setup.label_place(frame, train.labels.column if train.labels else ""),
        **between(read, train, held, evaluation, accepts),
    )


def _lookalikes(training: TrainerTraining) -> Iterator[Lookalike]:
    """Objects in scope that have the rows of a passed set and a required input that the set lacks."""
    passed = {"train": training.trainer.train_dataset, "evaluation": training.evaluation_set()}
    for split, data in passed.items():
        columns = getattr(data, "column_names", None)
        if columns is None or (count := length(data)) is None:
            continue
        for named in objects_in_scope(training.scope):
            other = getattr(named.value, "column_names", None)
            if isinstance(other, list) and named.value is not data and length(named.value) == count:
                yield Lookalike(expression=named.expression, columns=tuple(other), split=split)


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


def _try_rows(training: TrainerTraining, facts: SplitFacts) -> str:
    """What training does with rows whose inputs or labels are missing or not finite; empty: nothing bad."""
    bad = suspicious_rows(facts, training.accepts()[0])
    if not bad or facts.rows is None:
        return ""
    trainer = training.trainer
    kept = trainer.train_dataset
    data = kept if facts.name == "train" else training.evaluation_set()
    # Half bad and half good rows in one batch: a loss that ignores unknown labels needs some known ones.
    count = max(1, min(16, trainer.args.train_batch_size) // 2)
    others = list(itertools.islice((r for r in range(facts.rows) if r not in bad), count))
    try:
        trainer.train_dataset = tensors.choose_rows(data, others)
        usual = _outcome(training) if others else ""
        if usual:
            return f"{UNTRIED}: {usual}"
        known = others if trainer.args.train_batch_size > 1 else []
        trainer.train_dataset = tensors.choose_rows(data, [*known, *sorted(bad)[:count]])
        return _outcome(training)
    finally:
        trainer.train_dataset = kept


def _outcome(training: TrainerTraining) -> str:
    """The result of a step on the training set's first batch: an exception, a loss that is not finite, or ""."""
    batch, failure, _ = training.first_batch(evaluation=False)
    if batch is None or failure is not None:
        return str(failure)
    training.reset()
    with training.ready(0), Observer(training.wrapped, training.active.all).catching() as record:
        training.compute(batch, record)
    training.reset()
    if record.failure is not None:
        return str(record.failure)
    return "" if record.loss is None or math.isfinite(record.loss) else f"the loss is {record.loss}"
