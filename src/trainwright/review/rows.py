"""The rows that a record has answers and labels for: of training, and of the last evaluation of each set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Place
from trainwright.rehearsal.record import (
    Answers,
    Floats,
    Integers,
    LabelKind,
    Output,
    PairSource,
    Record,
    TrainedLabels,
    Training,
)
from trainwright.review.scores import BESIDE, Score, scores_of, tell

# Fewer rows in the last pass (an evaluation of one batch each) are joined with those of the updates shortly before it.
FEW_ROWS, SHORTLY = 20, 0.75
# Of the updates of the model that was trained last, the last ones: what it has become.
LAST_SHARE = 0.25
# Evaluated rows are rows of training if so many are, and so few of them are equal to each other by themselves.
TRAINED_SHARE, EQUAL_SHARE = 0.5, 0.1
# A run that was ended early had its chance after this share of its plan.
CHANCE = 0.5
# Labels in the order of the answers are hit so much more often than labels in another order, and by so many standard errors.
IN_ORDER, IN_ORDER_ERRORS, FEWEST_IN_ORDER = 0.15, 5.0, 50
# The share of answers that differ, whatever their order, from which they are others.
OTHER_ANSWERS = 0.1
# Measures that need no explanation, in this order.
PLAINEST = ("accuracy", "R2", "AUC")
# Where one output often meets several targets (mixed rows), equal rows have unequal labels on purpose.
MIXED_CALLS = 3
# So many calls with the same few labels are of one batch.
SAME_CALLS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class AnsweredRows:
    """Rows of one output with what the model answered."""

    output: Output
    update: int
    labels: NDArray[Any]
    guesses: Integers | None
    log_losses: Floats | None
    values: Floats | None
    calls: tuple[Answers, ...]
    trained: TrainedLabels | None
    """The labels of training; None if they were not seen."""
    trains: bool
    is_held_out: bool
    where: Place | None = None

    @property
    def model(self) -> int:
        """The model that answered; 0: unknown."""
        return self.calls[0].model

    @property
    def source(self) -> PairSource:
        """How answers and labels were seen together."""
        return self.calls[0].source

    @cached_property
    def scores(self) -> list[Score]:
        """The measures, beside those of a constant answer."""
        return scores_of(self.output, self.labels, self.guesses, self.log_losses, self.values, self.trained)

    @property
    def best(self) -> Score:
        """The measure that is told: the plainest that shows a gain, otherwise the one nearest to it."""
        shown = [one for one in self.scores if one.shows]
        plain = (one for name in PLAINEST for one in shown if one.name == name)
        own = [one for one in self.scores if one.name != BESIDE or self.output.width == 1]
        return next(plain, max(shown or own, key=lambda one: one.errors))

    @property
    def learned(self) -> bool:
        """Whether a measure shows that the answers are better than a constant one."""
        return any(one.shows for one in self.scores)

    @property
    def at_constant(self) -> bool:
        """Whether no measure sees that they are."""
        return bool(self.scores) and all(one.sees_nothing for one in self.scores)

    def score(self, name: str) -> Score | None:
        """The measure of this name."""
        return next((one for one in self.scores if one.name == name), None)

    @property
    def unit(self) -> str:
        """What has a label each: rows, or positions in them."""
        return "positions" if any(one.per_row > 1 for one in self.calls) else "rows"

    @property
    def named(self) -> str:
        """These rows in words."""
        kind = "training" if self.trains or not self.is_held_out else "evaluation"
        return f"{len(self.labels):,} {kind} {self.unit}"

    @property
    def are_whole(self) -> bool:
        """Whether all rows of the calls were kept, and not a sample of them."""
        return sum(one.total for one in self.calls) <= len(self.labels)

    @property
    def told(self) -> str:
        """The best measure in words."""
        return tell(self.best, self.named)


def trained_rows(record: Record, training: Training | None = None, *, scored: bool = True) -> list[AnsweredRows]:
    """The last rows of training, of each output; the most first. Scored: those that can tell answers apart."""
    found = []
    for output, calls in _by_output(record, True, training).items():
        if not _are_made(output, calls):
            of_model = [one for one in calls if one.model == calls[-1].model]
            begin, end = of_model[0].update, of_model[-1].update
            found.append(_join(record, [one for one in of_model if one.update >= end - LAST_SHARE * (end - begin)]))
    return sorted((one for one in found if one.scores or not scored), key=lambda one: -len(one.labels))


def latest(record: Record, rows: AnsweredRows, fewest: int) -> AnsweredRows:
    """The last of them, so many at least: a model that still learns is what it is at the end."""
    chosen: list[Answers] = []
    for one in reversed(rows.calls):
        chosen.insert(0, one)
        if sum(len(each.labels) for each in chosen) >= fewest:
            break
    return _join(record, chosen)


def evaluated_rows(record: Record, training: Training | None = None, *, scored: bool = True) -> list[AnsweredRows]:
    """The rows of the last evaluation of each output and set; those of trained models, and the most, first."""
    found: list[AnsweredRows] = []
    for output, calls in _by_output(record, False, training).items():
        if not _are_made(output, calls):
            found += [_truest([_join(record, last) for last in ways]) for ways in _last_passes(calls)]
    found = [one for one in found if one.scores or not scored]
    # A difference is one of an answer and its label only where training has such labels.
    found = [one for one in found if one.source != PairSource.DIFFERENCE or one.trained is not None]
    trained = trained_models(record)
    known = [one for one in found if one.model in trained]
    chosen = [one for one in found if one.output not in {o.output for o in known} or one in known]
    return sorted(chosen, key=lambda one: (-one.update, -len(one.labels)))


def held_out_rows(record: Record, training: Training | None = None) -> list[AnsweredRows]:
    """Those of them that were not trained on."""
    return [one for one in evaluated_rows(record, training) if one.is_held_out]


def rows_of_pass(record: Record, number: int) -> list[AnsweredRows]:
    """The rows of one evaluation pass, of each output."""
    found = _by_output(record, False, None).values()
    joined = [_join(record, calls) for of in found if (calls := [one for one in of if one.evaluation == number])]
    return [one for one in joined if one.scores]


def answers_in_two_ways(record: Record) -> Iterator[tuple[AnsweredRows, AnsweredRows]]:
    """The rows of the last evaluation of each set whose answers met labels in two ways: of which one agrees, one does not."""
    for output, calls in _by_output(record, False, None).items():
        for ways in _last_passes(calls) if output.kind != LabelKind.NUMBERS and not _are_made(output, calls) else ():
            joined = [_join(record, last) for last in ways]
            truest = _truest(joined)
            others = [one for one in joined if one is not truest and _agrees_more(truest, one)]
            yield from ((truest, one) for one in others if _are_same_answers(truest, one))


def _truest(ways: list[AnsweredRows]) -> AnsweredRows:
    """The surest of several ways in which the same answers met labels, unless another one agrees far better: in another
    order of rows nothing agrees, and by chance nothing does."""
    return next((one for one in ways[1:] if _agrees_more(one, ways[0])), ways[0])


def _are_same_answers(one: AnsweredRows, other: AnsweredRows) -> bool:
    """Whether each class is answered about as often in both: in another order of rows they are the same answers."""
    if one.guesses is None or other.guesses is None:
        return one.output == other.output
    width, both = max(one.output.width, other.output.width), (one.guesses, other.guesses)
    mine, theirs = (np.bincount(of, minlength=width) / len(of) for of in both)
    return float(np.abs(mine - theirs).sum()) / 2 < OTHER_ANSWERS


def _agrees_more(one: AnsweredRows, other: AnsweredRows) -> bool:
    """Whether the labels of one way are hit far more often than those of the other, on enough rows."""
    mine, theirs = one.score("accuracy"), other.score("accuracy")
    if mine is None or theirs is None or one.output.kind == LabelKind.NUMBERS:
        return False
    count = min(len(one.labels), len(other.labels))
    return count >= FEWEST_IN_ORDER and mine.value - theirs.value > max(IN_ORDER, IN_ORDER_ERRORS / (2 * count**0.5))


def had_its_chance(record: Record, training: Training | None = None) -> bool:
    """Whether the plan was run, or so much of it that what was not learned says something."""
    last = training or (record.trainings[-1] if record.trainings else None)
    cut = record.ended.is_cut or record.ended.failure is not None or record.ended.status is not None
    ended = last is not None and last.ends is not None and not last.is_cut and last.ends < record.updates
    if not (cut or (last is not None and last.is_cut)) or ended:
        return True
    if last is None or not last.planned:
        return False
    return record.updates_in(last) >= CHANCE * last.planned


def trained_models(record: Record) -> set[int]:
    """The models that the run trains, by what is known of them."""
    return {one.model for one in record.passes if one.is_trained} | {
        one.model for one in record.answers if one.trains and one.model
    }


def mixes_rows(record: Record) -> bool:
    """Whether training mixes rows, so that an output has several targets."""
    return record.several_targets >= MIXED_CALLS


def updates_of(record: Record) -> int:
    """The updates of a run; of weights that are changed by hand, the gradients that were taken."""
    return record.updates or len(record.losses)


def tell_updates(record: Record, training: Training | None = None) -> str:
    """How much was trained, in words: "300 of 5,000 planned updates"."""
    if training is None and len(record.trainings) == 1:
        training = record.trainings[0]
    if training is None:
        return f"{updates_of(record):,} updates"
    made = record.updates_in(training)
    planned = f" of {training.planned:,} planned" if training.planned and training.planned > made else ""
    return f"{made:,}{planned} updates"


def _by_output(record: Record, trains: bool, training: Training | None) -> dict[Output, list[Answers]]:
    found: dict[Output, list[Answers]] = {}
    for one in record.answers:
        if one.trains == trains and len(one.labels) and (training is None or _belongs(record, training, one)):
            found.setdefault(one.output, []).append(one)
    return {output: sorted(calls, key=lambda one: one.update) for output, calls in found.items()}


def _belongs(record: Record, training: Training, one: Answers) -> bool:
    """Whether a call is of this training: made in it, or after it and before the next one."""
    later = [other.begins for other in record.trainings if other.number > training.number]
    end = min(later, default=record.updates)
    if one.trains:
        return training.begins <= one.update < max(end, training.begins + 1)
    return training.begins < one.update <= end


def made_outputs(record: Record) -> set[Output]:
    """The outputs whose labels in training are made, and no rows'."""
    return {output for output, calls in _by_output(record, True, None).items() if _are_made(output, calls)}


def _are_made(output: Output, calls: Sequence[Answers]) -> bool:
    """Whether the labels are made and no rows': one class a call (real against made), or each row its own class."""
    several = [one for one in calls if len(one.labels) > 1]
    if output.kind == LabelKind.NUMBERS or not several:
        return False
    if len(several) > 1 and all(len(np.unique(one.labels)) < 2 for one in several):
        return True
    if output.kind == LabelKind.CLASSES:
        return all(len(np.unique(one.labels)) == len(one.labels) == max(one.total, output.width) for one in several)
    return False


def _last_passes(calls: list[Answers]) -> Iterator[list[list[Answers]]]:
    """The last pass over each set: of one model, in each way in which labels were seen, the surest first. Tables that no
    loader draws from, and that are answered whole again and again, are told apart by their rows."""
    names = ["" if one.data or one.keys is None else one.keys.tobytes() for one in calls]
    times = Counter(names)
    groups: dict[tuple[int, int, str | bytes], list[Answers]] = {}
    for one, name in zip(calls, names, strict=True):
        groups.setdefault((one.model, one.data, name if times[name] > 1 else ""), []).append(one)
    for of_set in groups.values():
        yield [_last_pass(same) for source in PairSource if (same := [one for one in of_set if one.source == source])]


def _last_pass(calls: list[Answers]) -> list[Answers]:
    last = calls[-1].update
    here = _once([one for one in calls if one.update == last])
    few = sum(len(one.labels) for one in here) < FEW_ROWS
    return [one for one in calls if one.update >= SHORTLY * last] if few else here


def _once(calls: list[Answers]) -> list[Answers]:
    """Without the calls that hold the same rows again: the last of each."""
    found: dict[Any, Answers] = {}
    for number, one in enumerate(calls):
        is_again = (
            one.keys is None and one.guesses is not None and len(one.labels) >= FEW_ROWS
        )  # two metrics of one table
        name: Any = (one.labels.tobytes(), one.guesses.tobytes()) if is_again and one.guesses is not None else number
        found[name if one.keys is None else one.keys.tobytes()] = one
    return list(found.values())


def _without_repeated(calls: Sequence[Answers]) -> list[Answers]:
    """The calls without rows that a later update answers again: each counts once."""
    if len({one.update for one in calls}) < 2:
        return list(calls)
    sizes = [len(one.labels) for one in calls]
    is_one = len(calls) >= SAME_CALLS and len({one.labels.tobytes() for one in calls}) == 1
    names = np.concatenate([_names_of(number, one, is_one) for number, one in enumerate(calls)])
    updates = np.repeat([one.update for one in calls], sizes)
    _, last, of = np.unique(names[::-1], return_index=True, return_inverse=True)
    is_last = updates == updates[::-1][last][of][::-1]
    kept = np.split(is_last, np.cumsum(sizes)[:-1])
    return [_chosen(one, rows) for one, rows in zip(calls, kept, strict=True) if rows.any()]


def _names_of(number: int, one: Answers, is_one: bool) -> Integers:
    """Equal numbers for equal rows; where neither keys nor rows' numbers are known, for all rows of calls with the same labels,
    of which few are equal by chance unless they are so in all calls (`is_one`)."""
    if one.keys is not None:
        return one.keys
    if one.numbers is not None:
        return np.array([hash((one.data, row)) for row in one.numbers.tolist()], dtype=np.int64)
    is_same = len(one.labels) >= FEW_ROWS or (is_one and len(np.unique(one.labels)) > 1)
    return np.full(len(one.labels), hash(one.labels.tobytes()) if is_same else number, dtype=np.int64)


def _chosen(one: Answers, rows: NDArray[np.bool_]) -> Answers:
    """Some of the rows of a call."""
    if rows.all():
        return one
    arrays: dict[str, Any] = {name: value[rows] for name, value in vars(one).items() if isinstance(value, np.ndarray)}
    return replace(one, **arrays, total=one.total - int((~rows).sum()))


def _join(record: Record, calls: Sequence[Answers]) -> AnsweredRows:
    calls = _without_repeated(calls)
    first = calls[0]
    place = next((p.where for p in record.passes if p.number == calls[-1].evaluation), None)
    if first.trains:
        place = next((t.where for t in reversed(record.trainings) if t.begins <= calls[-1].update), None)
    return AnsweredRows(
        output=first.output,
        update=calls[-1].update,
        labels=np.concatenate([one.labels for one in calls]),
        guesses=_together([one.guesses for one in calls]),
        log_losses=_together([one.log_losses for one in calls]),
        values=_together([one.values for one in calls]),
        calls=tuple(calls),
        trained=record.trained_labels.get(first.output),
        trains=first.trains,
        is_held_out=not first.trains and not are_trained(record, calls),
        where=place,
    )


def _together(parts: Sequence[Any]) -> Any:
    return None if any(one is None for one in parts) else np.concatenate(parts)


def are_trained(record: Record, calls: Sequence[Answers]) -> bool:
    """Whether the rows of evaluation calls are rows that were trained on; not told where rows are equal by chance."""
    if any(one.data and one.data == drawn.data and drawn.trains for one in calls for drawn in record.drawn):
        if not _splits_by_number(record, calls):
            return True
    keys = [key for one in calls if one.keys is not None for key in one.keys.tolist()]
    if not keys or len(set(keys)) < (1 - EQUAL_SHARE) * len(keys):
        return False
    return float(np.mean([key in record.trained_keys for key in set(keys)])) >= TRAINED_SHARE


def _splits_by_number(record: Record, calls: Sequence[Answers]) -> bool:
    """Whether samplers share one set out: the evaluated numbers are not those that are trained on."""
    sets = {one.data for one in calls}
    numbers = {n for one in calls if one.numbers is not None for n in one.numbers.tolist()}
    drawn = [one for one in record.drawn if one.data in sets]
    trained = {n for one in drawn for n, times in one.draws.items() if times > one.evaluated.get(n, 0)}
    return bool(numbers) and bool(trained) and len(numbers & trained) < TRAINED_SHARE * len(numbers)
