"""Facts about fit's training and validation sets: their rows, the steps in each epoch, and steps on the extreme rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.labels import alignment_of, label_copy_of, label_sources
from trainwright.adapters.data.numbering import renumbered
from trainwright.adapters.data.odd_rows import (
    MOST_ROWS,
    RowStep,
    TriedSet,
    try_extremes,
    try_unusable,
    try_worst_rows,
)
from trainwright.adapters.data.source_cells import with_cells
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.nested_values import named
from trainwright.adapters.keras.input.one_batch import X, rows_of_batch
from trainwright.adapters.keras.input.reading import class_columns, read_set, target_names, without_labels
from trainwright.adapters.keras.input.sources import Arrays, Drawn
from trainwright.adapters.keras.optimizer import accumulated_batches
from trainwright.core.finding import Place
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.labels import batch_majority
from trainwright.probes.splits.transfer import transfer_of
from trainwright.probes.splits.two_sets import between
from trainwright.stages import (
    BadRow,
    DatasetFacts,
    EndlessSet,
    EpochFacts,
    OddRowFacts,
    Reading,
    Split,
    SplitFacts,
)

MOST_EPOCHS = 1_000
# Keras looks at this many batches of a generator when it starts, and yields them again in each later epoch.
PEEKED_BATCHES = 2


def measure_dataset(
    data: FitData,
    *,
    scope: Mapping[str, Any],
    label_place: Place | None = None,
    step_on: Callable[[FitData], RowStep | None] | None = None,
) -> DatasetFacts:
    """Read a sample of the data and count its labels.

    Args:
        scope: the script's objects.
        label_place: the user's line that made the targets.
        step_on: takes a training step on the first rows of a set.
    """
    labels = target_names(data)
    read = read_set(data)
    inputs = without_labels(_names(read), labels)
    train = measure_split(read, labels, inputs, one_hot=True)
    held = read_set(data.validation) if data.validation is not None else None
    evaluation = measure_split(held, labels, inputs, one_hot=True) if held else None
    classes = class_columns(read, labels), class_columns(held, labels) if held else None
    alignment = alignment_of(classes[0], train, inputs)
    return DatasetFacts(
        train=_try_extremes(data, train, inputs, step_on),
        evaluation=evaluation,
        accepts=inputs,
        alignment=alignment,
        aligned_source=aligned_source(classes[0], train, alignment, inputs, scope),
        renumbered=renumbered(classes[0], classes[1], scope),
        evaluation_alignment=alignment_of(classes[1], evaluation, inputs) if classes[1] and evaluation else None,
        label_copy=label_copy_of(classes[0], train, inputs),
        shuffles=_shuffles(data),
        batch_size=data.batch_size or (data.pool(1)[0].rows if read.failure is None and data.pool(1) else 0),
        batch_majority=_batch_majority(classes[0], train, data),
        repetition=repetition_of(getattr(data.source, "given", None), classes[0], train),
        sources=tuple(label_sources(train, evaluation, held, scope, _passed(data), _uncut(data))),
        unusable_rows={s.name: _try_rows(d, s, inputs, step_on) for d, s in _sets(data, train, evaluation)},
        label_place=label_place,
        epochs=_epochs(data, read),
        transfer=transfer_of(classes[0], train, classes[1], evaluation, inputs),
        **between(classes[0], train, classes[1], evaluation, inputs),
        endless=tuple(_endless(data)),
    )


def _batch_majority(read: Split, facts: SplitFacts, data: FitData) -> float | None:
    """How strongly one class dominates batches of rows read in order."""
    labels = facts.labels
    if labels is None or labels.kind != "class" or labels.column not in read.columns:
        return None
    size = data.batch_size or (read.read // data.seen_batches if data.seen_batches else 0)
    return batch_majority(read.columns[labels.column], size)


def _names(read: Split) -> dict[str, Any]:
    names = [*read.columns, *read.digests, *(k for item in read.items[:1] for k in item)]
    return dict.fromkeys(names)


def _shuffles(data: FitData) -> bool | None:
    """Whether training draws rows in another order than they are read in here.

    A stream is read here as training will read it, including its own shuffling.
    """
    return data.shuffled if data.kind in ("arrays", "PyDataset", "DataLoader", "rows") else False


def _passed(data: FitData) -> list[Any]:
    """The arrays passed to fit."""
    sources = [d.source for d in data.sets()]
    given = [(s.x, s.y) for s in sources if isinstance(s, Arrays)]
    return [a for pair in given for part in pair for _, a in named(part, X)]


def _uncut(data: FitData) -> tuple[int, ...]:
    """The number of rows before the validation split was taken off."""
    return (len(data) + len(data.validation),) if data.split and data.validation is not None else ()


def _sets(data: FitData, train: SplitFacts, evaluation: SplitFacts | None) -> list[tuple[FitData, SplitFacts]]:
    pairs = [(data, train)]
    if data.validation is not None and evaluation is not None:
        pairs.append((data.validation, evaluation))
    return pairs


_StepOn = Callable[[FitData], RowStep | None]


def _try_rows(data: FitData, facts: SplitFacts, inputs: Sequence[str], step_on: _StepOn | None) -> str:
    """What training does with rows whose inputs or targets are missing or not finite; empty: nothing bad."""
    if step_on is None or any(batch.is_row for batch in data.read[:1]):
        return ""
    return try_unusable(facts, inputs, data.batch_size or MOST_ROWS, lambda rows: step_on(data.taken(rows)))


def _try_extremes(data: FitData, facts: SplitFacts, inputs: Sequence[str], step_on: _StepOn | None) -> SplitFacts:
    """The facts, in which extremes have the loss of a step; of arrays only, whose rows can be chosen."""
    if step_on is None or not isinstance(data.source, Arrays):
        return facts
    return try_extremes(facts, inputs, data.batch_size or MOST_ROWS, lambda rows: step_on(data.chosen(rows)))


def _epochs(data: FitData, read: Split) -> EpochFacts | None:
    """How many steps each epoch will have; None if the data's end was not reached."""
    if read.failure is not None or not (batches := _batches(data, read)):
        return None
    once = isinstance(data.source, Drawn)
    again = min(PEEKED_BATCHES, batches) if once else batches
    epochs = min(max(1, data.plan.epochs), MOST_EPOCHS)
    known = data.source.batches is not None
    steps = steps_of_epochs(batches, again, known=known, asked=data.plan.steps_per_epoch, epochs=epochs)
    return EpochFacts(
        epochs=data.plan.epochs, asked=data.plan.steps_per_epoch, batches=batches, again=again, steps=steps
    )


def planned_updates(data: FitData, optimizer: Any, epochs: EpochFacts | None) -> int | None:
    """How many updates the real training would make; None if unknown.

    Args:
        epochs: how many steps each epoch will have, if that was measured.
    """
    accumulated = accumulated_batches(optimizer)
    if epochs is not None and len(epochs.steps) == epochs.epochs:
        return sum(epochs.steps) // accumulated
    batches = data.batches_per_epoch
    return None if batches is None else batches * data.plan.epochs // accumulated


def _endless(data: FitData) -> list[EndlessSet]:
    """Endless sets that fit reads to their end, because nothing limits the steps of an epoch."""
    asked = {"train": "steps_per_epoch", "evaluation": "validation_steps"}
    return [
        EndlessSet(name=s.name, argument=asked[s.name], batches=s.source.batches_repeated)
        for s in data.sets()
        if s.source.endless and not s.plan.steps_per_epoch
    ]


def _batches(data: FitData, read: Split) -> int | None:
    """The number of batches in one pass over the data."""
    if data.source.batches is not None:
        return data.source.batches
    return data.seen_batches if read.rows is not None and read.rows == read.read else None


def steps_of_epochs(batches: int, again: int, *, known: bool, asked: int | None, epochs: int) -> tuple[int, ...]:
    """How many steps each epoch has, following keras/src/trainers/epoch_iterator.py (3.15).

    With a number of steps, one pass over the data continues across epochs. If it ends within an epoch, the epoch ends
    there, and the next one starts a new pass.

    Args:
        batches: batches in the first pass.
        again: batches in each later pass.
        known: whether the data report how many batches they have.
    """
    count = batches if known else None
    left: int | None = None
    passes = itertools.chain([batches], itertools.repeat(again))
    seen = 0
    steps = []
    for _ in range(epochs):
        taken = 0
        if left is None or asked is None:
            left, seen = next(passes), 0
        for _ in range(asked or count or left + 1):
            if count and seen >= count:
                break
            seen += 1
            if left == 0:
                count, left = count or seen, None
                break
            left -= 1
            taken += 1
        if left is not None and count and seen >= count:
            left = None
        steps.append(taken)
    return tuple(steps)


def try_rows(
    data: FitData, dataset: DatasetFacts, seconds: float, *, scope: Mapping[str, Any], step_on: _StepOn
) -> OddRowFacts:
    """What steps on the extreme rows come to."""
    readings, bad = dict[str, Reading](), list[BadRow]()
    sets = _sets(data, dataset.train, dataset.evaluation)
    for one, facts in sets:
        if not any(batch.is_row for batch in one.read[:1]):
            readings[facts.name] = Reading(read=facts.read, rows=facts.rows)
            bad += _try_set(one, facts, seconds / len(sets), step_on)
    by_name = {facts.name: one for one, facts in sets}

    def item_of(name: str, row: int) -> Mapping[str, Any] | None:
        if not isinstance(by_name[name].source, Arrays):  # its rows have no lasting numbers
            return None
        return next(rows_of_batch(next(by_name[name].chosen([row]).elements()))).view()

    return with_cells(OddRowFacts(readings=readings, bad=tuple(bad)), scope, item_of)


def _try_set(data: FitData, facts: SplitFacts, seconds: float, step_on: _StepOn) -> list[BadRow]:
    tried = TriedSet(
        name=facts.name,
        odd=facts.odd,
        others=range(facts.read),
        batch_size=data.batch_size or MOST_ROWS,
        step=lambda rows: step_on(data.taken(rows)),
        evaluated=facts.name != "train",
    )
    return try_worst_rows(tried, seconds)
