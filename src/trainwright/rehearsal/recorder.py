"""Collects a record: what the watchers write into, how often they look, and how much is kept.

A watcher must not change the run: it draws no random numbers, leaves no hooks on the user's objects, and an exception of its
own never reaches the script.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Place
from trainwright.frameworks.packages import TrainingKind
from trainwright.rehearsal.readable import Names, read_all
from trainwright.rehearsal.record import (
    Answers,
    Drawn,
    Floats,
    Integers,
    LabelKind,
    Number,
    Output,
    Pass,
    Record,
    TrainedLabels,
    Training,
    Update,
)
from trainwright.rehearsal.sampling import Offer, Sampler
from trainwright.seams.devices.memory_owners import is_device_error, is_out_of_memory

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# Rows of one call whose outputs and labels are kept.
MOST_ROWS = 512
# Training calls whose answers are kept: the first ones, and the last ones.
FIRST_TRAINING_CALLS, MOST_TRAINING_CALLS = 20, 400
# Distinct rows that were trained on: their inputs, for a simple learner; and their keys.
MOST_TRAINED_ROWS, MOST_KEYS = 2500, 20_000
# Numbers of a row beyond which its inputs are not kept.
MOST_INPUTS = 4096
# Calls of one evaluation output that are kept before the passes in between are thinned out.
MOST_EVALUATION_CALLS = 400
MOST_NUMBERS = 20_000
# Updates that are all looked at; then one in eleven, then one in 101: primes, so that of optimizers that take turns each is met.
EACH, SOME, RARELY, MORE_RARELY = 50, 5_000, 11, 101
# Smoothed labels have two values.
_FEWEST_VALUES = 3


class Recorder:
    """Writes a record while the script runs."""

    def __init__(self) -> None:
        self.record = Record()
        self.sampler: Sampler | None = Sampler()
        """Keeps the rows that are shown one by one; None: no row is to be shown."""
        self.names = Names()
        self.busy = False
        """Whether a watcher is at work: what it calls itself is not recorded."""
        self.on_update: list[Callable[[], None]] = []
        """Called after each update: progress, and the end of the time."""
        self.on_begin: list[Callable[[], None]] = []
        """Called when a training begins."""
        self.begin_unseen: Callable[[], None] = lambda: None
        """Called when the script differentiates with JAX: it may train where no update is seen."""
        self.is_over: Callable[[], bool] = lambda: False
        """Whether the training under way has had its time, and is to end."""
        self.is_emptied = False
        """Whether the training is being ended: its passes have a batch each, and say nothing of the script's own."""
        self.keras_runs = False
        """Whether Keras trains or evaluates just now: on torch, its own tensors are no loop of the script's."""
        self.on_end: list[Callable[[BaseException | None], None]] = []
        """Called when the script has ended, with the exception that ended it or with None."""
        self.on_finish: list[Callable[[], None]] = []
        """Called after the run, before the record is made."""
        self.on_written: list[Callable[[], None]] = []
        """Called once the record was written: what it may have on top, and what may not end."""
        self._started = time.perf_counter()
        self._first: dict[Output, list[Answers]] = {}
        self._training: dict[Output, deque[Answers]] = {}
        self._evaluating: dict[Output, list[Answers]] = {}
        self._emptied: dict[Output, list[Answers]] = {}
        self._trained: dict[Output, dict[int, tuple[Floats, Any]]] = {}
        self._numbers: dict[int, tuple[weakref.ref[Any] | Any, int]] = {}
        self._objects = 0
        self._errors: Counter[str] = Counter()

    def watching(self, function: F) -> F:
        """A watcher's function that raises nothing and is not watched itself; it returns None where it failed."""

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self.busy:
                return None
            self.busy = True
            try:
                return function(*args, **kwargs)
            except Exception as error:  # a watcher's own: counted, never the script's
                self._count_error(function, error)
            finally:
                self.busy = False
            return None

        return watched  # type: ignore[return-value]

    def guard(self, function: Callable[[], T]) -> T | None:
        """Call what watches and guards its own parts, so that the rest of it can fail; None where it failed."""
        try:
            return function()
        except Exception as error:  # a watcher's own: counted, never the script's
            self._count_error(function, error)
            return None

    def _count_error(self, function: Callable[..., Any], error: Exception) -> None:
        if is_device_error(error) or is_out_of_memory(error):  # of what the script left on the device, and how much
            return
        name = getattr(function, "__qualname__", type(function).__name__)
        self._errors[f"{name}: {type(error).__name__}: {error}"[:200]] += 1

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.perf_counter() - self._started

    def is_due(self, count: int) -> bool:
        """Whether the count-th of something frequent is looked at."""
        return count % self.stride(count) == 0

    @staticmethod
    def stride(count: int) -> int:
        """One in how many is looked at, behind so many."""
        return 1 if count <= EACH else RARELY if count <= SOME else MORE_RARELY

    def number_of(self, thing: Any) -> int:
        """A number that tells objects apart, from 1 on; it keeps none alive."""
        known = self._numbers.get(id(thing))
        if known is not None and (known[0]() if isinstance(known[0], weakref.ref) else known[0]) is thing:
            return known[1]
        self._objects += 1
        try:
            held: Any = weakref.ref(thing)
        except TypeError:
            held = thing
        self._numbers[id(thing)] = held, self._objects
        return self._objects

    @property
    def training(self) -> Training | None:
        """The training that is under way."""
        last = self.record.trainings[-1] if self.record.trainings else None
        return last if last is not None and last.ends is None else None

    def next_training(self, where: Place | None, kind: TrainingKind = TrainingKind.LOOP, **known: Any) -> Training:
        """The training that is about to begin.

        Args:
            known: further fields of it.
        """
        trainings, updates = self.record.trainings, self.record.updates
        return Training(number=len(trainings) + 1, kind=kind, begins=updates, where=where, **known)

    def begin_training(self, training: Training) -> Training:
        """Note that a training begins; the one before it has ended."""
        self.end_training()
        self.forget_rows()
        self.record.trainings.append(training)
        for called in self.on_begin:
            called()
        return training

    def forget_rows(self) -> None:
        """A further training has rows of its own."""
        for output in self._trained:
            self._trained[output] = {}

    def end_training(self, weights: float | None = None) -> None:
        """Note that the training has ended."""
        self.is_emptied = False
        if (training := self.training) is not None:
            training.ends, training.weights_after = self.record.updates, weights
            if training.has_moved is None and None not in (weights, training.weights_before):
                training.has_moved = weights != training.weights_before

    def have_moved(self, weights: Collection[Any], most_rows: int) -> bool | None:
        """Whether weights were other ones at a later update; None: it is not known. Where no row came twice, or no others
        than one call has, nobody may have wanted them to move."""
        times = self.record.trained_keys
        comes_again = len(times) > most_rows and max(times.values()) > 1
        return True if len(weights) > 1 else False if comes_again else None

    def end_update(self) -> None:
        """Count an update, and call who waits for it."""
        self.record.updates += 1
        for called in self.on_update:
            called()

    def add_loss(self, value: float, update: int | None = None) -> None:
        """Note what `backward` was called on, behind so many updates; None: those made so far."""
        self.record.losses.append((self.record.updates if update is None else update, value))

    def add_update(self, optimizer: Any, number: int, rate: float, gradient_norm: float | None) -> None:
        """Note an update that an optimizer makes, the number-th of all."""
        made = Update(number=number, optimizer=self.number_of(optimizer), rate=rate, gradient_norm=gradient_norm)
        self.record.looked_updates.append(made)

    def add_number(self, name: str, value: float, source: str) -> None:
        """Note a number that the script reports."""
        if len(self.record.numbers) < MOST_NUMBERS and not self.is_emptied:
            self.record.numbers.append(
                Number(update=self.record.updates, name=name.lower(), value=value, source=source)
            )

    def begin_pass(self, made: Pass, anew: bool = False) -> Pass:
        """The pass that a call without gradients belongs to: the last one, or a new one; always a new one if so asked."""
        last = self.record.passes[-1] if self.record.passes else None
        same = last is not None and (last.update, last.model, last.data, last.weights) == (
            made.update,
            made.model,
            made.data,
            made.weights,
        )
        if last is None or not same or anew:
            made.number = len(self.record.passes) + 1
            self.record.passes.append(made)
            return made
        return last

    def draw(self, data: Any, size: int, numbers: list[int], name: str = "") -> Drawn:
        """Note the rows that a loader draws from a set, which is an object or a name of its own."""
        key = self.number_of(data)
        found = next((d for d in self.record.drawn if d.data == key), None)
        if found is None:
            found = Drawn(data=key, size=size, name=name or type(data).__name__)
            self.record.drawn.append(found)
        found.draws.update(numbers)
        return found

    def count_labels(self, output: Output, labels: NDArray[Any]) -> None:
        """Count the labels of a training call: all of its rows, not only those that are kept."""
        counts = self.record.trained_labels.setdefault(output, TrainedLabels())
        if output.kind == LabelKind.CLASSES:
            values, times = np.unique(labels, return_counts=True)
            counts.classes.update(dict(zip(values.tolist(), times.tolist())))
            return
        wide = labels.reshape(len(labels), -1).astype(np.float64)
        zero = np.zeros(wide.shape[1])
        counts.count += len(wide)
        counts.total = (zero if counts.total is None else counts.total) + wide.sum(0)
        counts.squares = (zero if counts.squares is None else counts.squares) + (wide**2).sum(0)

    def add_answers(self, answers: Answers) -> None:
        """Keep what the model answered, beside what is right."""
        if answers.trains:
            if answers.keys is not None:
                self.add_trained(answers.output, answers.keys, answers.labels, answers.inputs)
            answers = replace(answers, inputs=None)
            first = self._first.setdefault(answers.output, [])
            if len(first) < FIRST_TRAINING_CALLS:
                first.append(answers)
            else:
                self._training.setdefault(answers.output, deque(maxlen=MOST_TRAINING_CALLS)).append(answers)
            return
        calls = (self._emptied if self.is_emptied else self._evaluating).setdefault(answers.output, [])
        calls.append(answers)
        updates = sorted({one.update for one in calls})
        if len(calls) > MOST_EVALUATION_CALLS and len(updates) > 6:  # the first, the middle and the last remain
            chosen = {*updates[:2], updates[len(updates) // 2], *updates[-3:]}
            calls[:] = [one for one in calls if one.update in chosen]

    def offer(self, offer: Offer) -> None:
        """Let rows of a call be shown, if any may be."""
        if self.sampler is None:
            return
        keys, torn = offer.answers.keys, self.record.answers_of.get(offer.answers.output, {})
        if keys is not None and torn:
            offer.torn = np.array([len(torn.get(key, ())) > 1 for key in keys.tolist()], dtype=bool)
        self.sampler.offer(offer)

    def add_trained(self, output: Output, keys: Integers, labels: NDArray[Any], inputs: Floats | None = None) -> None:
        """Note rows that were trained on."""
        drawn, first = self.record.trained_keys, self.record.first_trained
        torn = self.record.answers_of.setdefault(output, {})
        rows = self._trained.setdefault(output, {})
        for index, key in enumerate(keys.tolist()):
            if key in drawn or len(drawn) < MOST_KEYS:
                drawn[key] = drawn.get(key, 0) + 1
                first.setdefault(key, self.record.updates)
            if output.kind == LabelKind.CLASSES and (key in torn or len(torn) < MOST_KEYS):
                torn.setdefault(key, Counter())[int(labels[index])] += 1
            if inputs is not None and key not in rows and len(rows) < MOST_TRAINED_ROWS:
                rows[key] = inputs[index], labels[index]

    def _read_samples(self) -> None:
        """Turn the rows that are shown into what a person reads, and give classes their names."""
        outputs = {one.output for one in self.record.answers}
        named = {output: self.names.classes_of(output) or self.names.words_of(output) for output in outputs}
        self.record.class_names = {output: names for output, names in named.items() if names}
        if self.sampler is not None:
            self.record.samples = read_all(self.sampler.chosen(), self.names)

    def finish(self) -> Record:
        """The record, with what was collected on the way."""
        record = self.record
        self.end_training()
        evaluated = {**self._emptied, **self._evaluating}
        stored = (*self._first.values(), *self._training.values(), *evaluated.values())
        record.answers = [one for kept in stored for one in kept]
        for output, rows in self._trained.items():
            widths = Counter(len(inputs) for inputs, _ in rows.values())
            width = max(widths, key=lambda one: widths[one], default=0)
            same = {key: row for key, row in rows.items() if len(row[0]) == width}
            if same:
                keys: Integers = np.array(list(same), dtype=np.int64)
                inputs = np.stack([x for x, _ in same.values()])
                record.trained_rows[output] = inputs, np.stack([y for _, y in same.values()]), keys
        self.guard(self._read_samples)
        _number_soft_labels(record)
        record.watcher_errors = dict(self._errors)
        record.seconds = self.seconds
        return record


def spread(count: int, most: int) -> Integers:
    """At most `most` of the numbers from 0 to count - 1, evenly spaced."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)


def asks_for_rows(argnums: int | Collection[int], args: Sequence[Any], leaves: Callable[[Any], list[Any]]) -> bool:
    """Whether a gradient is asked for at rows and not at weights: at one array, as long as another argument."""
    chosen = {argnums} if isinstance(argnums, int) else {*argnums}
    is_chosen = [number in chosen or number - len(args) in chosen for number in range(len(args))]
    mine, others = (
        leaves([one for one, own in zip(args, is_chosen, strict=True) if own == of]) for of in (True, False)
    )
    lengths = [[one.shape[0] for one in many if getattr(one, "shape", ())] for many in (mine, others)]
    return len(mine) == 1 and bool(lengths[0]) and lengths[0][0] in lengths[1]


def _number_soft_labels(record: Record) -> None:
    """Make numbers of the outputs whose labels lie between no and yes: of the evaluation's, if there are any."""
    for output in sorted({one.output for one in record.answers if one.output.kind == LabelKind.BINARY}):
        if _is_soft(record, output):
            _rename(record, output, _free(record, Output(LabelKind.NUMBERS, output.width, output.number)))


def _is_soft(record: Record, output: Output) -> bool:
    calls = [one for one in record.answers if one.output == output and len(one.labels)]
    labels = [one.labels.reshape(-1) for one in calls if not one.trains] or [one.labels.reshape(-1) for one in calls]
    values = np.unique(np.concatenate(labels)) if labels else np.zeros(0)
    return len(values) >= _FEWEST_VALUES and bool(((values > 0) & (values < 1)).any())


def _free(record: Record, output: Output) -> Output:
    known = {one.output for one in record.answers}
    while output in known:
        output = replace(output, number=output.number + 1)
    return output


def _rename(record: Record, before: Output, now: Output) -> None:
    record.answers = [replace(one, output=now) if one.output == before else one for one in record.answers]
    for one in record.samples:
        if one.output == before:
            one.output = now
    tables: list[dict[Output, Any]] = [
        record.trained_labels,
        record.trained_rows,
        record.answers_of,
        record.class_names,
    ]
    for table in tables:
        if before in table:
            table[now] = table.pop(before)
