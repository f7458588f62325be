"""The scores, classes and outputs of a sheet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core.sheet import CLASSES, HELD_OUT, OUTPUTS, SCORES, TRAINING, Row
from trainwright.rehearsal.record import Answers, Floats, Kind, Output, Record, TrainedLabels
from trainwright.review import _scores
from trainwright.review._learner import simple_scores
from trainwright.review._rows import Rows, evaluated_rows, trained_rows
from trainwright.review._scores import are_probabilities
from trainwright.review._sheet_samples import named_classes

# Classes, and numbers of an output, that are shown one by one: those of a language model are not.
MOST_CLASSES, MOST_NUMBERS = 20, 20
# Fewer rows do not stand out, and fewer rows of a class.
FEWEST_MARKED = 40
FEWEST_OF_CLASS = 10
# Share of a class's rows that get one wrong answer.
MOSTLY_WRONG = 0.5
# Three standard errors of a share of a half.
CLEARLY = 1.5
# Answers that vary less than this share of their labels are one answer for all rows.
SAME_ANSWER = 0.01
# A simple learner is clearly better by so much, and by such a share of what the model leaves, in all its scores (as `_learner`
# has it).
SIMPLE_GAIN, SIMPLE_ROOM = 0.2, 0.45
# The first training calls are those of this share of the updates.
EARLY = 0.1


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """The last answers of one output on one set."""

    rows: Rows
    of: str
    """What tells it apart from others; empty: nothing has to."""


def _seen(record: Record) -> list[_Seen]:
    """All outputs on all sets; held-out rows first, the most rows first."""
    evaluated = evaluated_rows(record, scored=False)
    every = [*evaluated, *trained_rows(record, scored=False)]
    several_outputs = len({rows.output for rows in every}) > 1
    sets = sorted({rows.calls[0].data for rows in evaluated})
    models = sorted({rows.model for rows in evaluated})
    found = []
    for rows in every:
        parts = [str(rows.output)] if several_outputs else []
        parts += [f"set {sets.index(rows.calls[0].data) + 1}"] if len(sets) > 1 and not rows.trains else []
        parts += [f"model {models.index(rows.model) + 1}"] if len(models) > 1 and not rows.trains else []
        found.append(_Seen(rows=rows, of=", ".join(parts)))
    return sorted(found, key=lambda one: (not one.rows.is_held_out, one.rows.trains, -len(one.rows.labels)))


def scores(record: Record) -> tuple[Row, ...]:
    """How well answers and labels agree, beside a constant and a simple learner."""
    return tuple(score for seen in _seen(record) for score in _scores_of(record, seen))


def _scores_of(record: Record, seen: _Seen) -> list[Row]:
    rows, first = seen.rows, {score.name: score.value for score in _first(record, seen.rows)}
    simple = simple_scores(record, rows)
    last = {score.name: score.value for score in rows.scores}
    gains = [(simple[name] - last[name], 1 - last[name]) for name in simple if name in last]
    is_below = bool(gains) and all(gain >= max(SIMPLE_GAIN, SIMPLE_ROOM * room) for gain, room in gains)
    return [
        SCORES.row(
            name=score.name,
            scale="standard deviations" if score.name == "absolute error" else "",
            output=seen.of,
            rows_of=HELD_OUT if rows.is_held_out else TRAINING,
            rows=len(rows.labels),
            unit=rows.unit,
            first=first.get(score.name),
            last=score.value,
            constant=score.constant,
            simple=simple.get(score.name),
            mark="like a constant"
            if score.sees_nothing and not rows.learned and len(rows.labels) >= FEWEST_MARKED
            else "below a simple learner"
            if is_below and score.name in simple
            else "",
        )
        for score in rows.scores
    ]


def _first(record: Record, rows: Rows) -> list[_scores.Score]:
    """The scores of the first evaluation of the same set, or of the first training calls; none if these are the last."""
    last = rows.calls[0]
    calls = [
        one for one in record.answers if (one.trains, one.output) == (last.trains, last.output) and len(one.labels)
    ]
    if rows.trains:
        early = EARLY * max(record.updates, 1)
        calls = [one for one in calls if one.update <= early and one.update < last.update]
    else:
        same = [o for o in calls if (o.model, o.data, o.source) == (last.model, last.data, last.source)]
        begin = min((one.update for one in same), default=last.update)
        calls = [one for one in same if one.update == begin < last.update]
    if not calls:
        return []
    labels, trained = np.concatenate([one.labels for one in calls]), record.trained_labels.get(last.output)
    guesses, losses, values = (_joined(calls, name) for name in ("guesses", "log_losses", "values"))
    return _scores.scores_of(last.output, labels, guesses, losses, values, trained)


def _joined(calls: list[Answers], name: str) -> Any:
    parts = [getattr(one, name) for one in calls]
    return None if any(part is None for part in parts) else np.concatenate(parts)


def class_rows(record: Record) -> tuple[Row, ...]:
    """Each class of the outputs that have few; the worst first."""
    shown: dict[Output, _Seen] = {}
    for seen in _seen(record):
        shown.setdefault(seen.rows.output, seen)
    several = len(shown) > 1
    return tuple(
        row
        for seen in shown.values()
        for row in _class_rows(
            seen.rows, str(seen.rows.output) if several else "", named_classes(record, seen.rows.output)
        )
    )


def _class_rows(rows: Rows, of: str, named: dict[int, str]) -> list[Row]:
    found = _decided(rows)
    if found is None:
        return []
    labels, guesses = found
    drawn = _drawn(rows.output, rows.trained)
    known = sorted({*labels.tolist(), *(drawn or {})})
    if len(known) > MOST_CLASSES:
        return []
    names = {0: "no", 1: "yes"} if rows.output.kind == Kind.BINARY else {one: str(one) for one in known}
    names |= named
    made = [_class_row(one, of, labels, guesses, drawn, names) for one in known]
    return sorted(made, key=lambda row: (not row.mark, 2.0 if row.right is None else row.right))


def _decided(rows: Rows) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Labels and answers as classes; None: there are none."""
    if rows.output.kind == Kind.CLASSES and rows.guesses is not None:
        return rows.labels, rows.guesses
    if (
        rows.output.kind == Kind.BINARY
        and rows.output.width == 1
        and rows.values is not None
        and are_probabilities(rows.values)
    ):
        return (rows.labels.reshape(-1) > 0.5).astype(int), (rows.values.reshape(-1) > 0.5).astype(int)
    return None


def _drawn(output: Output, trained: TrainedLabels | None) -> Counter[int] | None:
    if trained is None:
        return None
    if output.kind == Kind.CLASSES:
        return trained.classes
    yes = 0 if trained.total is None else round(float(trained.total.sum()))
    return Counter({0: trained.count - yes, 1: yes})


def _class_row(
    label: int,
    of_output: str,
    labels: NDArray[Any],
    guesses: NDArray[Any],
    drawn: Counter[int] | None,
    names: dict[int, str],
) -> Row:
    of = guesses[labels == label]
    wrong = Counter(of[of != label].tolist())
    other, times = wrong.most_common(1)[0] if wrong else (label, 0)
    right = float(np.mean(of == label)) if len(of) else None
    mark = ""
    if not len(of):
        mark = "not evaluated"
    elif drawn is not None and not drawn[label]:
        mark = "never drawn in training"
    elif len(of) >= FEWEST_OF_CLASS and right == 0:
        mark = "never found"
    elif len(of) >= FEWEST_OF_CLASS and times / len(of) > MOSTLY_WRONG + CLEARLY / len(of) ** 0.5:
        mark = "confused"
    return CLASSES.row(
        label=names[label],
        output=of_output,
        drawn=None if drawn is None else drawn[label],
        evaluated=len(of),
        right=right,
        taken_for=f"{names.get(other, other)} ({times / len(of):.0%})" if times else "",
        mark=mark,
    )


def output_rows(record: Record) -> tuple[Row, ...]:
    """Each output; those of a few numbers, number by number."""
    shown: dict[Output, _Seen] = {}
    for seen in _seen(record):
        shown.setdefault(seen.rows.output, seen)
    return tuple(row for seen in shown.values() for row in _output_rows(seen.rows))


def _output_rows(rows: Rows) -> list[Row]:
    drawn = 0 if rows.trained is None else rows.trained.count or rows.trained.classes.total()
    name, source = str(rows.output), str(rows.calls[0].source)
    if rows.output.kind == Kind.CLASSES:
        answered = None if rows.guesses is None else len(np.unique(rows.guesses))
        labelled = len(np.unique(rows.labels))
        return [
            OUTPUTS.row(
                name=name,
                source=source,
                drawn=drawn,
                evaluated=len(rows.labels),
                classes=labelled,
                classes_answered=answered,
                mark="always the same answer" if answered == 1 and labelled > 1 else "",
            )
        ]
    labels = rows.labels.reshape(len(rows.labels), -1).astype(np.float64)
    if (
        rows.values is None
        or (answers := rows.values.reshape(len(labels), -1).astype(np.float64)).shape != labels.shape
    ):
        return [OUTPUTS.row(name=name, source=source, drawn=drawn, evaluated=len(labels))]
    width = labels.shape[1]
    if width > MOST_NUMBERS:
        return [_numbers(name, source, drawn, labels, answers)]
    names = [f"number {i + 1} of {width}" if width > 1 else name for i in range(width)]
    return [_numbers(one, source, drawn, labels[:, i], answers[:, i]) for i, one in enumerate(names)]


def _numbers(name: str, source: str, drawn: int, labels: Floats, answers: Floats) -> Row:
    spread, given = float(labels.std()), float(answers.std())
    mark = "always the same answer" if given < SAME_ANSWER * spread and len(labels) >= FEWEST_OF_CLASS else ""
    return OUTPUTS.row(
        name=name,
        source=source,
        drawn=drawn,
        evaluated=len(labels),
        label_mean=float(labels.mean()),
        label_deviation=spread,
        answer_mean=float(answers.mean()),
        answer_deviation=given,
        mark=mark if np.isfinite(given) else "not finite",
    )
