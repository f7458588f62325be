"""The scores, classes and outputs of a sheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core.sheet import CLASSES, HELD_OUT, OUTPUTS, SCORES, TRAINING, Row
from trainwright.rehearsal.record import Floats, LabelKind, Output, Record, TrainedLabels
from trainwright.review.learner import simple_scores
from trainwright.review.rows import AnsweredRows, evaluated_rows, trained_rows
from trainwright.review.scores import SHOWN_ERRORS, Score
from trainwright.review.sheet_samples import decide_classes, names_of

_Decided = tuple[NDArray[Any], NDArray[Any]]

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


def _seen(record: Record) -> list[tuple[AnsweredRows, str]]:
    """The last answers of all outputs on all sets, with what tells them apart; held-out rows first, the most rows first."""
    evaluated = evaluated_rows(record, scored=False)
    every = [*evaluated, *trained_rows(record, scored=False)]
    several_outputs = len({rows.output for rows in every}) > 1
    sets = _name_sets(record, evaluated)
    models = sorted({rows.model for rows in evaluated})
    found = []
    for rows in every:
        parts = [str(rows.output)] if several_outputs else []
        parts += [sets[rows.calls[0].data]] if len(sets) > 1 and not rows.trains else []
        parts += [f"model {models.index(rows.model) + 1}"] if len(models) > 1 and not rows.trains else []
        found.append((rows, ", ".join(parts)))
    return sorted(found, key=lambda one: (not one[0].is_held_out, one[0].trains, -len(one[0].labels)))


def _name_sets(record: Record, evaluated: Sequence[AnsweredRows]) -> dict[int, str]:
    """What tells each evaluated set from the others on its side of the split: its class, its loader's line, or its number."""
    sides, drawn = {rows.calls[0].data: rows.is_held_out for rows in evaluated}, {one.data: one for one in record.drawn}
    named = {one: f"set {number}" for number, one in enumerate(sorted(sides), 1)}
    for key in ("where", "name"):
        told = {one: str(getattr(drawn.get(one), key, None) or "") for one in sides}
        times = Counter((told[one], sides[one]) for one in sides)
        named |= {one: told[one] for one in sides if told[one] and times[told[one], sides[one]] == 1}
    return named


def scores(record: Record) -> tuple[Row, ...]:
    """How well answers and labels agree, beside a constant and a simple learner."""
    return tuple(score for rows, of in _seen(record) for score in _scores_of(record, rows, of))


def _scores_of(record: Record, rows: AnsweredRows, of: str) -> list[Row]:
    first = {score.name: score.value for score in first_scores(record, rows)}
    simple = simple_scores(record, rows)
    last = {score.name: score.value for score in rows.scores}
    gains = [(simple[name] - last[name], 1 - last[name]) for name in simple if name in last]
    is_last = not _is_superseded(record, rows)
    is_below = is_last and bool(gains) and all(gain >= max(SIMPLE_GAIN, SIMPLE_ROOM * room) for gain, room in gains)
    return [
        SCORES.row(
            name=score.name,
            scale="standard deviations" if score.name == "absolute error" else "",
            output=of,
            rows_of=HELD_OUT if rows.is_held_out else TRAINING,
            rows=len(rows.labels),
            unit=rows.unit,
            first=first.get(score.name),
            last=score.value,
            constant=score.constant,
            simple=simple.get(score.name),
            mark="like a constant"
            if is_last and rows.at_constant and score.surely_sees_nothing and len(rows.labels) >= FEWEST_MARKED
            else "below a simple learner"
            if is_below and score.name in simple
            else "",
        )
        for score in rows.scores
    ]


def _is_superseded(record: Record, rows: AnsweredRows) -> bool:
    """Whether other weights of the model were evaluated later: those of the best update, or of a longer training."""
    own = next((one for one in record.passes if one.number == rows.calls[-1].evaluation), None)
    return own is not None and any(
        one.number > own.number and one.model == own.model and one.weights != own.weights for one in record.passes
    )


def first_scores(record: Record, rows: AnsweredRows) -> list[Score]:
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
    parts = {name: [getattr(one, name) for one in calls] for name in ("guesses", "log_losses", "values")}
    answers: dict[str, Any] = {k: None if any(p is None for p in of) else np.concatenate(of) for k, of in parts.items()}
    return replace(rows, labels=np.concatenate([one.labels for one in calls]), **answers).scores


def class_rows(record: Record) -> tuple[Row, ...]:
    """Each class of the outputs that have few; the worst first."""
    shown = _of_each_output(record)
    return tuple(
        row
        for rows in shown
        for row in _class_rows(
            rows, str(rows.output) if len(shown) > 1 else "", record.class_names.get(rows.output, ())
        )
    )


def _of_each_output(record: Record) -> list[AnsweredRows]:
    """The rows of each output that come first."""
    shown: dict[Output, AnsweredRows] = {}
    for rows, _ in _seen(record):
        shown.setdefault(rows.output, rows)
    return list(shown.values())


def _class_rows(rows: AnsweredRows, of: str, named: tuple[str, ...]) -> list[Row]:
    found = decide_classes(rows)
    if found is None:
        return []
    drawn = _drawn(rows.output, rows.trained)
    known = sorted({*found[0].tolist(), *(drawn or {})})
    if len(known) > MOST_CLASSES:
        return []
    names = names_of(rows.output, known, named)
    made = [_class_row(rows, one, of, found, drawn, names) for one in known]
    return sorted(made, key=lambda row: (not row.mark, 2.0 if row.right is None else row.right))


def _drawn(output: Output, trained: TrainedLabels | None) -> Counter[int] | None:
    if trained is None:
        return None
    if output.kind == LabelKind.CLASSES:
        return trained.classes
    yes = 0 if trained.total is None else round(float(trained.total.sum()))
    return Counter({0: trained.count - yes, 1: yes})


def _class_row(
    rows: AnsweredRows, label: int, of_output: str, found: _Decided, drawn: Counter[int] | None, names: dict[int, str]
) -> Row:
    labels, guesses = found
    of = guesses[labels == label]
    wrong = Counter(of[of != label].tolist())
    other, times = wrong.most_common(1)[0] if wrong else (label, 0)
    right = float(np.mean(of == label)) if len(of) else None
    mark = ""
    if not len(of):
        mark = "not evaluated" if rows.are_whole and not rows.trains else ""
    elif drawn is not None and not drawn[label]:
        mark = "never drawn in training"
    elif len(of) >= FEWEST_OF_CLASS and right == 0 and _is_surely_behind(label, labels, guesses):
        mark = "never found"
    elif len(of) >= FEWEST_OF_CLASS and times / len(of) > MOSTLY_WRONG + CLEARLY / len(of) ** 0.5:
        mark = "confused"
    return CLASSES.row(
        label=names[label],
        output=of_output,
        drawn=None if drawn is None else drawn[label],
        evaluated=None if rows.trains else len(of),
        answered=len(of) if rows.trains else None,
        right=right,
        taken_for=f"{names.get(other, other)} ({times / len(of):.0%})" if times else "",
        mark=mark,
    )


def _is_surely_behind(label: int, labels: NDArray[Any], guesses: NDArray[Any]) -> bool:
    """Whether a class without a right answer has enough rows for some, were it found as others or as by guessing."""
    count = int((labels == label).sum())
    others = [float((guesses[labels == one] == one).mean()) for one in np.unique(labels) if one != label]
    usual = max(float(np.mean(others)), 1 / (1 + len(others))) if others else 1.0
    return bool(usual > SHOWN_ERRORS * (usual * (1 - usual) / count) ** 0.5)


def output_rows(record: Record) -> tuple[Row, ...]:
    """Each output; those of a few numbers, number by number."""
    return tuple(row for rows in _of_each_output(record) for row in _output_rows(rows))


def _output_rows(rows: AnsweredRows) -> list[Row]:
    drawn = 0 if rows.trained is None else rows.trained.count or rows.trained.classes.total()
    name = str(rows.output)
    counted: dict[str, Any] = {"answered" if rows.trains else "evaluated": len(rows.labels)}
    row = partial(OUTPUTS.row, source=str(rows.source), drawn=drawn, **counted)
    if rows.output.kind == LabelKind.CLASSES:
        answered = None if rows.guesses is None else len(np.unique(rows.guesses))
        labelled = len(np.unique(rows.labels))
        is_same = answered == 1 and np.count_nonzero(rows.guesses != rows.labels) >= FEWEST_OF_CLASS
        mark = "always the same answer" if is_same else ""
        return [row(name=name, classes=labelled, classes_answered=answered, mark=mark)]
    labels = rows.labels.reshape(len(rows.labels), -1).astype(np.float64)
    if rows.values is None or rows.values.size != labels.size:
        return [row(name=name)]
    answers = rows.values.reshape(labels.shape).astype(np.float64)
    width = labels.shape[1]
    if width == 1 or width > MOST_NUMBERS:
        return [row(name=name, **_numbers(labels, answers))]
    return [row(name=f"number {i + 1} of {width}", **_numbers(labels[:, i], answers[:, i])) for i in range(width)]


def _numbers(labels: Floats, answers: Floats) -> dict[str, Any]:
    spread, given = float(labels.std()), float(answers.std())
    is_same = given < SAME_ANSWER * spread and len(labels) >= FEWEST_OF_CLASS
    return {
        "label_mean": float(labels.mean()),
        "label_deviation": spread,
        "answer_mean": float(answers.mean()),
        "answer_deviation": given,
        "mark": "not finite" if not np.isfinite(given) else "always the same answer" if is_same else "",
    }
