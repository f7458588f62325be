"""fit's data sets in numbers: the training set and what it is validated on, and how many steps the epochs will have."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.data.alignment import alignment_of
from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.label_sources import label_sources
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.adapters.data.unusable_rows import suspicious_rows
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.nested_values import named
from trainwright.adapters.keras.input.one_batch import Batch, X, rows_of_batch
from trainwright.adapters.keras.input.reading import class_columns, read_set, target_names, without_labels
from trainwright.adapters.keras.input.sources import Arrays, Drawn
from trainwright.core.finding import Place
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.labels import batch_majority
from trainwright.probes.splits.two_sets import between
from trainwright.stages.dataset import UNTRIED, DatasetFacts, Split, SplitFacts
from trainwright.stages.reading import EndlessSet, EpochFacts

MOST_EPOCHS = 1_000
# So many batches of a generator are looked at when Keras begins with it, and given again at each later epoch.
PEEKED_BATCHES = 2


def measure_dataset(
    data: FitData,
    *,
    scope: Mapping[str, Any],
    accepts: Sequence[str] = (),
    label_place: Place | None = None,
    outcome: Callable[[FitData], str] | None = None,
) -> DatasetFacts:
    """Read a sample of the data and a census of its labels.

    Args:
        scope: the script's objects.
        accepts: the names of the inputs that the model takes; empty: all that the data give.
        label_place: the user's line that made the targets.
        outcome: what becomes of a training step on the first rows of a set: the exception, the loss if it is not
            finite, or "".
    """
    labels = target_names(data)
    read = read_set(data)
    inputs = tuple(accepts) or without_labels(_names(read), labels)
    train = measure_split(read, labels, inputs, one_hot=True)
    held = read_set(data.validation) if data.validation is not None else None
    evaluation = measure_split(held, labels, inputs, one_hot=True) if held else None
    classes = class_columns(read, labels), class_columns(held, labels) if held else None
    alignment = alignment_of(classes[0], train, inputs)
    return DatasetFacts(
        train=train,
        evaluation=evaluation,
        accepts=inputs,
        alignment=alignment,
        aligned_source=aligned_source(classes[0], train, alignment, inputs, scope),
        evaluation_alignment=alignment_of(classes[1], evaluation, inputs) if classes[1] and evaluation else None,
        shuffles=_shuffles(data),
        batch_size=data.batch_size or (data.pool(1)[0].rows if read.failure is None and data.pool(1) else 0),
        batch_majority=_batch_majority(classes[0], train, data),
        repetition=repetition_of(next(iter(getattr(data.source, "owners", ())), None), classes[0], train),
        sources=tuple(label_sources(train, evaluation, held, scope, _passed(data), _uncut(data))),
        unusable_rows={s.name: _try_rows(d, s, inputs, outcome) for d, s in _sets(data, train, evaluation)},
        label_place=label_place,
        epochs=_epochs(data, read),
        **between(classes[0], train, classes[1], evaluation, inputs),
        endless=tuple(_endless(data)),
    )


def _batch_majority(read: Split, facts: SplitFacts, data: FitData) -> float | None:
    """How much batches of rows read in order are of one class."""
    labels = facts.labels
    if labels is None or labels.kind != "class" or labels.column not in read.columns:
        return None
    size = data.batch_size or (read.read // data.seen_batches if data.seen_batches else 0)
    return batch_majority(read.columns[labels.column], size)


def _names(read: Split) -> dict[str, Any]:
    names = [*read.columns, *read.digests, *(k for item in read.items[:1] for k in item)]
    return dict.fromkeys(names)


def _shuffles(data: FitData) -> bool | None:
    """Whether rows are drawn in another order than they are read in here.

    What is streamed is read here as training will read it, its own shuffling included.
    """
    return data.shuffled if data.kind in ("arrays", "PyDataset", "DataLoader", "rows") else False


def _passed(data: FitData) -> list[Any]:
    """The arrays that fit was given."""
    sets = [data] if data.validation is None else [data, data.validation]
    sources = [d.source for d in sets]
    given = [(s.x, s.y) for s in sources if isinstance(s, Arrays)]
    return [a for pair in given for part in pair for _, a in named(part, X)]


def _uncut(data: FitData) -> tuple[int, ...]:
    """The number of rows before the end was split off for validation."""
    return (len(data) + len(data.validation),) if data.split and data.validation is not None else ()


def _sets(data: FitData, train: SplitFacts, evaluation: SplitFacts | None) -> list[tuple[FitData, SplitFacts]]:
    pairs = [(data, train)]
    if data.validation is not None and evaluation is not None:
        pairs.append((data.validation, evaluation))
    return pairs


def _try_rows(data: FitData, facts: SplitFacts, inputs: Sequence[str], outcome: Callable[[FitData], str] | None) -> str:
    """What training does with rows whose inputs or targets are missing or not finite; empty: nothing bad."""
    bad = suspicious_rows(facts, inputs)
    if not bad or facts.rows is None or outcome is None:
        return ""
    # Half of each, in one batch: a loss that leaves unknown labels out needs some that are known.
    count = max(1, min(16, data.batch_size or 16) // 2)
    if not isinstance(data.source, Arrays):
        return _try_streamed(data, count, len(bad), outcome)
    others = list(itertools.islice((r for r in range(facts.rows) if r not in bad), count))
    usual = outcome(data.chosen(others)) if others else ""
    if usual:
        return f"{UNTRIED}: {usual}"
    known = others if (data.batch_size or 2) > 1 else []
    return outcome(data.chosen([*known, *sorted(bad)[:count]]))


def _try_streamed(
    data: FitData, count: int, known: int, outcome: Callable[[FitData], str], *, seconds: float = 6.0
) -> str:
    """The same for a stream, whose rows may come in another order at each pass: they are known by what they hold.

    Args:
        count: how many rows of each kind are tried at most.
        known: how many bad ones were seen.
        seconds: how long they are looked for.
    """
    sound: list[Batch] = []
    bad: list[Batch] = []
    started = time.monotonic()
    for batch in data.elements():
        if len(sound) < count or not _is_whole(batch):
            for row in rows_of_batch(batch):
                kept, most = (sound, count) if _is_whole(row) else (bad, min(count, known))
                if len(kept) < most:
                    kept.append(row)
        if (len(sound) == count and len(bad) == min(count, known)) or time.monotonic() - started > seconds:
            break
    usual = outcome(data.of_rows(sound)) if sound else ""
    if usual or not bad:
        return f"{UNTRIED}: {usual}" if usual else ""
    return outcome(data.of_rows([*(sound if (data.batch_size or 2) > 1 else []), *bad]))


def _is_whole(batch: Batch) -> bool:
    """Whether all numbers of a batch, or of a row, are finite."""
    arrays = map(np.asarray, batch.view().values())
    return all(a.dtype.kind != "f" or bool(np.isfinite(a).all()) for a in arrays)


def _epochs(data: FitData, read: Split) -> EpochFacts | None:
    """How many steps each epoch will have; None where the data were not seen to end."""
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
    """How many updates the real training would make; None where that is not known.

    Args:
        epochs: how many steps each epoch will have, once that was measured.
    """
    accumulated = getattr(optimizer, "gradient_accumulation_steps", None) or 1
    if epochs is not None and len(epochs.steps) == epochs.epochs:
        return sum(epochs.steps) // accumulated
    batches = data.batches_per_epoch
    return None if batches is None else batches * data.plan.epochs // accumulated


def _endless(data: FitData) -> list[EndlessSet]:
    """The sets that have no end and that fit goes over to their end, for nothing says how many steps an epoch has."""
    asked = {"train": "steps_per_epoch", "evaluation": "validation_steps"}
    sets = [data] if data.validation is None else [data, data.validation]
    return [
        EndlessSet(name=s.name, argument=asked[s.name], batches=s.source.batches_repeated)
        for s in sets
        if s.source.endless and not s.plan.steps_per_epoch
    ]


def _batches(data: FitData, read: Split) -> int | None:
    """The batches of one pass over the data."""
    if data.source.batches is not None:
        return data.source.batches
    return data.seen_batches if read.rows is not None and read.rows == read.read else None


def steps_of_epochs(batches: int, again: int, *, known: bool, asked: int | None, epochs: int) -> tuple[int, ...]:
    """How many steps each epoch has: as keras/src/trainers/epoch_iterator.py (3.15) goes over the data.

    With a number of steps, one pass over the data goes on from epoch to epoch; where it ends within an epoch, the
    epoch ends there, and the next one begins anew.

    Args:
        batches: in the first pass.
        again: in each later pass.
        known: the data say how many batches they have.
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
