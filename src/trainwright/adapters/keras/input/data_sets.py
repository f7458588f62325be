"""Facts about fit's training and validation sets: their rows, the steps in each epoch, and steps on the extreme rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from trainwright.adapters.data.measured_sets import ReadSets, measure_sets, with_class_numbers
from trainwright.adapters.data.odd_rows import MOST_ROWS, RowStep, Step, TriedSet, try_worst_rows
from trainwright.adapters.data.source_cells import with_cells
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.nested_values import name_arrays
from trainwright.adapters.keras.input.one_batch import X, rows_of_batch
from trainwright.adapters.keras.input.reading import read_set, target_names, without_labels
from trainwright.adapters.keras.input.sources import Arrays, ReplayedGenerator
from trainwright.adapters.keras.optimizer import accumulated_batches
from trainwright.core import Place
from trainwright.probes.splits.labels import batch_majority
from trainwright.stages import BadRow, DatasetFacts, EndlessSet, EpochFacts, OddRowFacts, Reading, Split, SplitFacts

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
    held = read_set(data.validation) if data.validation is not None else None
    by_name = {one.name: one for one in (data, data.validation) if one is not None}
    facts = measure_sets(
        ReadSets(
            train=read,
            held=held,
            data={"train": getattr(data.source, "given", None)},
            label_names=labels,
            accepts=without_labels(_names(read), labels),
            scope=scope,
            batch_size=data.batch_size or 0,
            step_on=lambda one: _step_on(by_name[one.name], step_on),
            is_numbered=isinstance(data.source, Arrays),
            has_one_hot=True,
            passed=_passed(data),
            sizes=_uncut(data),
        )
    )
    return replace(
        facts,
        shuffles=_shuffles(data),
        batch_size=data.batch_size or (data.pool(1)[0].rows if read.failure is None and data.pool(1) else 0),
        batch_majority=_batch_majority(with_class_numbers(read, labels), facts.train, data),
        label_place=label_place,
        epochs=_epochs(data, read),
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
    return [a for pair in given for part in pair for _, a in name_arrays(part, X)]


def _uncut(data: FitData) -> tuple[int, ...]:
    """The number of rows before the validation split was taken off."""
    return (len(data) + len(data.validation),) if data.split and data.validation is not None else ()


def _sets(data: FitData, train: SplitFacts, evaluation: SplitFacts | None) -> list[tuple[FitData, SplitFacts]]:
    pairs = [(data, train)]
    if data.validation is not None and evaluation is not None:
        pairs.append((data.validation, evaluation))
    return pairs


_StepOn = Callable[[FitData], RowStep | None]


def _step_on(data: FitData, step_on: _StepOn | None) -> Step:
    """A step on rows of a set; of rows that come one by one there is none."""
    if step_on is None or any(batch.is_row for batch in data.read[:1]):
        return lambda rows: None
    return lambda rows: step_on(data.taken(rows))


def _epochs(data: FitData, read: Split) -> EpochFacts | None:
    """How many steps each epoch will have; None if the data's end was not reached."""
    if read.failure is not None or not (batches := _batches(data, read)):
        return None
    once = isinstance(data.source, ReplayedGenerator)
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
    return data.planned_batches // accumulated if data.planned_batches is not None else None


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
