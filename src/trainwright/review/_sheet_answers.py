"""The scores, classes, outputs and inputs of a sheet."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core.sheet import HELD_OUT, TRAINING, ClassRow, Column, OutputRow, Score
from trainwright.rehearsal.record import Answers, Floats, Integers, Kind, Output, Record, TrainedLabels

# Classes, and columns of the input, that are shown one by one: those of a language model or a picture are not.
MOST_CLASSES, MOST_COLUMNS = 20, 20
# Evaluated rows of a class before it stands out.
LEAST_ROWS = 10
# A gain below this share of the room above a constant is none (from the prototype of the review).
LEAST_GAIN = 0.01
# A simple learner is clearly better by this much, and this share of the room (from the prototype).
SIMPLE_GAIN, SIMPLE_ROOM = 0.08, 0.45
# Share of a class's rows that get one wrong answer.
MOSTLY_WRONG = 0.5
# Answers that vary less than this share of their labels are one answer for all rows.
SAME_ANSWER = 0.01
# Deviations between the means of two sets, ratio of their deviations, and ratio of a column's deviation to the others' in the
# median, that stand out: rows of one source are far below.
FAR, OTHER_SCALE, UNSCALED = 3.0, 3.0, 100.0
# Share of the kept training rows that the first and the last of them are.
ENDS = 0.1


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The answers of one output on one set, first and last."""

    output: Output
    of: str
    """What tells it apart from others; empty: nothing has to."""
    rows_of: str
    first: list[Answers]
    """Empty: it was evaluated once."""
    last: list[Answers]

    @property
    def count(self) -> int:
        return sum(len(one.labels) for one in self.last)


def _seen(record: Record) -> list[_Rows]:
    """All outputs on all sets; held-out rows first, the most rows first."""
    trained = {drawn.data for drawn in record.drawn if drawn.trains}
    held: dict[tuple[Output, int, int], list[Answers]] = defaultdict(list)
    training: dict[Output, list[Answers]] = defaultdict(list)
    for one in record.answers:
        if not len(one.labels):
            continue
        if one.trains:
            training[one.output].append(one)
        else:
            held[one.output, one.data, one.model].append(one)
    found = []
    for (output, data, model), calls in held.items():
        parts = [str(output)] if len({key[0] for key in (*held, *((o, 0, 0) for o in training))}) > 1 else []
        parts += [f"set {data}"] if data and len({key[1] for key in held}) > 1 else []
        parts += [f"model {model}"] if model and len({key[2] for key in held}) > 1 else []
        updates = sorted({one.update for one in calls})
        found.append(
            _Rows(
                output=output,
                of=", ".join(parts),
                rows_of=TRAINING if data in trained else HELD_OUT,
                first=[one for one in calls if one.update == updates[0]] if len(updates) > 1 else [],
                last=[one for one in calls if one.update == updates[-1]],
            )
        )
    for output, calls in training.items():
        share = max(round(ENDS * len(calls)), 1)
        is_whole = calls[0].update <= ENDS * max(record.updates, 1)
        of = str(output) if len({key[0] for key in held} | set(training)) > 1 else ""
        first = calls[:share] if is_whole and len(calls) > share else []
        found.append(_Rows(output=output, of=of, rows_of=TRAINING, first=first, last=calls[-share:]))
    return sorted(found, key=lambda rows: (rows.rows_of != HELD_OUT, -rows.count))


def scores(record: Record) -> tuple[Score, ...]:
    """How well answers and labels agree, beside a constant."""
    return tuple(score for rows in _seen(record) for score in _scores(rows, record.trained_labels.get(rows.output)))


def _scores(rows: _Rows, trained: TrainedLabels | None) -> list[Score]:
    last, first = _agreement(rows.last, trained), _agreement(rows.first, trained)
    made = []
    for name, (value, constant, room) in last.items():
        gain = (value - constant) * (-1 if name == "log loss" else 1)
        made.append(
            Score(
                name=name,
                output=rows.of,
                rows_of=rows.rows_of,
                rows=rows.count,
                first=first[name][0] if name in first else None,
                last=value,
                constant=constant,
                mark="no better than a constant" if not gain >= LEAST_GAIN * room else "",
            )
        )
    return made


def _agreement(calls: Sequence[Answers], trained: TrainedLabels | None) -> dict[str, tuple[float, float, float]]:
    """By name: the value, that of the best constant of the training labels, and the room above that."""
    if not calls:
        return {}
    labels = np.concatenate([one.labels for one in calls])
    if calls[0].output.kind == Kind.CLASSES:
        return _of_classes(calls, labels, trained)
    values = [one.values.reshape(len(one.values), -1) for one in calls if one.values is not None]
    labels = labels.reshape(len(labels), -1).astype(np.float64)
    if len(values) != len(calls) or (answers := np.concatenate(values).astype(np.float64)).shape != labels.shape:
        return {}
    means = trained.total / trained.count if trained and trained.count and trained.total is not None else labels.mean(0)
    if calls[0].output.kind == Kind.BINARY:
        right, constant = (
            float(np.mean((answers > 0.5) == (labels > 0.5))),
            float(np.mean((labels > 0.5) == (means > 0.5))),
        )
        return {"accuracy": (right, constant, 1 - constant)}
    spread = ((labels - means) ** 2).mean(0)
    kept = spread > 0
    if not kept.any():
        return {}
    with np.errstate(all="ignore"):
        explained = 1 - ((labels - answers) ** 2).mean(0)[kept] / spread[kept]
    return {"R2": (float(explained.mean()), 0.0, 1.0)}


def _of_classes(
    calls: Sequence[Answers], labels: NDArray[Any], trained: TrainedLabels | None
) -> dict[str, tuple[float, float, float]]:
    counts = trained.classes if trained and trained.classes else Counter(labels.tolist())
    found = {}
    if all(one.guesses is not None for one in calls):
        guesses = _guesses(calls)
        most = counts.most_common(1)[0][0]
        constant = float(np.mean(labels == most))
        found["accuracy"] = (float(np.mean(guesses == labels)), constant, 1 - constant)
        classes = np.unique(labels)
        if 1 < len(classes) <= MOST_CLASSES:
            recalls = [float(np.mean(guesses[labels == one] == one)) for one in classes]
            found["mean recall"] = (sum(recalls) / len(recalls), 1 / len(classes), 1 - 1 / len(classes))
    losses = [one.log_losses for one in calls if one.log_losses is not None]
    if len(losses) == len(calls):
        total = counts.total() + calls[0].output.width
        constant = float(np.mean([-math.log((counts[one] + 1) / total) for one in labels.tolist()]))
        found["log loss"] = (float(np.concatenate(losses).mean()), constant, constant)
    return found


def _guesses(calls: Sequence[Answers]) -> Integers:
    return np.concatenate([one.guesses for one in calls if one.guesses is not None])


def class_rows(record: Record) -> tuple[ClassRow, ...]:
    """Each class of the outputs that have few; the worst first."""
    shown: dict[Output, _Rows] = {}
    for rows in _seen(record):
        shown.setdefault(rows.output, rows)
    return tuple(row for rows in shown.values() for row in _class_rows(rows, record.trained_labels.get(rows.output)))


def _class_rows(rows: _Rows, trained: TrainedLabels | None) -> list[ClassRow]:
    found = _decided(rows)
    if found is None:
        return []
    labels, guesses = found
    drawn = _drawn(rows.output, trained)
    known = sorted({*labels.tolist(), *(drawn or {})})
    if len(known) > MOST_CLASSES:
        return []
    names = {0: "no", 1: "yes"} if rows.output.kind == Kind.BINARY else {one: str(one) for one in known}
    made = [_class_row(one, rows, labels, guesses, drawn, names) for one in known]
    return sorted(made, key=lambda row: (not row.mark, 2.0 if row.right is None else row.right))


def _decided(rows: _Rows) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Labels and answers as classes; None: there are none."""
    labels = np.concatenate([one.labels for one in rows.last])
    if rows.output.kind == Kind.CLASSES and all(one.guesses is not None for one in rows.last):
        return labels, _guesses(rows.last)
    if rows.output.kind == Kind.BINARY and rows.output.width == 1 and all(one.values is not None for one in rows.last):
        answers = np.concatenate([one.values for one in rows.last if one.values is not None])
        return (labels.reshape(-1) > 0.5).astype(int), (answers.reshape(-1) > 0.5).astype(int)
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
    rows: _Rows,
    labels: NDArray[Any],
    guesses: NDArray[Any],
    drawn: Counter[int] | None,
    names: dict[int, str],
) -> ClassRow:
    of = guesses[labels == label]
    wrong = Counter(of[of != label].tolist())
    other, times = wrong.most_common(1)[0] if wrong else (label, 0)
    right = float(np.mean(of == label)) if len(of) else None
    mark = ""
    if not len(of):
        mark = "not evaluated"
    elif drawn is not None and not drawn[label]:
        mark = "never drawn in training"
    elif len(of) >= LEAST_ROWS and right == 0:
        mark = "never found"
    elif len(of) >= LEAST_ROWS and times > MOSTLY_WRONG * len(of):
        mark = "mostly taken for another"
    return ClassRow(
        label=names[label],
        output=rows.of,
        drawn=None if drawn is None else drawn[label],
        evaluated=len(of),
        right=right,
        taken_for=f"{names.get(other, other)} ({times / len(of):.0%})" if times else "",
        mark=mark,
    )


def output_rows(record: Record) -> tuple[OutputRow, ...]:
    """Each output; those of a few numbers, number by number."""
    shown: dict[Output, _Rows] = {}
    for rows in _seen(record):
        shown.setdefault(rows.output, rows)
    return tuple(row for rows in shown.values() for row in _output_rows(rows, record))


def _output_rows(rows: _Rows, record: Record) -> list[OutputRow]:
    trained = record.trained_labels.get(rows.output)
    drawn = 0 if trained is None else trained.count or trained.classes.total()
    source, labels = str(rows.last[0].source), np.concatenate([one.labels for one in rows.last])
    if rows.output.kind == Kind.CLASSES:
        answered = len(np.unique(_guesses(rows.last))) if all(one.guesses is not None for one in rows.last) else None
        labelled = len(np.unique(labels))
        mark = "always the same answer" if answered == 1 and labelled > 1 else ""
        return [
            OutputRow(
                name=str(rows.output),
                source=source,
                drawn=drawn,
                evaluated=rows.count,
                classes=labelled,
                classes_answered=answered,
                mark=mark,
            )
        ]
    values = [one.values.reshape(len(one.values), -1) for one in rows.last if one.values is not None]
    right = labels.reshape(len(labels), -1).astype(np.float64)
    if len(values) != len(rows.last) or (answers := np.concatenate(values).astype(np.float64)).shape != right.shape:
        return [OutputRow(name=str(rows.output), source=source, drawn=drawn, evaluated=rows.count)]
    width = right.shape[1]
    if width > MOST_COLUMNS:
        return [_numbers(str(rows.output), source, drawn, right, answers)]
    names = [f"number {i + 1} of {width}" if width > 1 else str(rows.output) for i in range(width)]
    return [_numbers(name, source, drawn, right[:, i], answers[:, i]) for i, name in enumerate(names)]


def _numbers(name: str, source: str, drawn: int, labels: Floats, answers: Floats) -> OutputRow:
    spread, given = float(labels.std()), float(answers.std())
    mark = "always the same answer" if given < SAME_ANSWER * spread and len(labels) >= LEAST_ROWS else ""
    return OutputRow(
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


def columns(record: Record) -> tuple[Column, ...]:
    """The model's inputs in training and on held-out rows; one by one if they are few."""
    if not record.trained_rows:
        return ()
    training = max((rows[0] for rows in record.trained_rows.values()), key=len).astype(np.float64)
    held = [
        one.inputs.astype(np.float64)
        for one in record.answers
        if not one.trains and one.inputs is not None and one.inputs.shape[1:] == training.shape[1:]
    ]
    others = np.concatenate(held) if held else training[:0]
    width = training.shape[1]
    if width > MOST_COLUMNS:
        return tuple(
            _both(
                f"all {width:,} columns",
                training.reshape(-1, 1),
                others.reshape(-1, 1),
                len(training),
                len(others),
                0.0,
            )
        )
    spreads = [_spread(training[:, i])[1] for i in range(width)]
    usual = float(np.median([s for s in spreads if s > 0] or [0.0]))
    return tuple(
        column
        for i in range(width)
        for column in _both(
            f"column {i + 1}", training[:, i : i + 1], others[:, i : i + 1], len(training), len(others), usual
        )
    )


def _both(name: str, training: Floats, held: Floats, rows: int, held_rows: int, usual: float) -> list[Column]:
    mean, spread = _spread(training)
    missing = float(np.mean(~np.isfinite(training)))
    mark = "missing values" if missing else "always the same" if spread == 0 and rows >= LEAST_ROWS else ""
    if not mark and usual and spread > UNSCALED * usual:
        mark = "a far larger scale than the others"
    made = [_column(name, TRAINING, training, rows, mark)]
    if held_rows:
        other_mean, other_spread = _spread(held)
        missing_here, far = float(np.mean(~np.isfinite(held))), ""
        if spread > 0 and held_rows >= LEAST_ROWS and rows >= LEAST_ROWS:
            scale = other_spread > OTHER_SCALE * spread or other_spread * OTHER_SCALE < spread
            far = "another scale than in training" if scale or abs(other_mean - mean) > FAR * spread else ""
        made.append(_column(name, HELD_OUT, held, held_rows, "missing values" if missing_here and not missing else far))
    return made


def _spread(values: Floats) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 0.0)


def _column(name: str, rows_of: str, values: Floats, rows: int, mark: str) -> Column:
    finite = values[np.isfinite(values)]
    mean, spread = _spread(values)
    return Column(
        name=name,
        rows_of=rows_of,
        rows=rows,
        least=float(finite.min()) if finite.size else None,
        greatest=float(finite.max()) if finite.size else None,
        mean=mean if finite.size else None,
        deviation=spread if finite.size else None,
        missing=1 - finite.size / values.size if values.size else 0.0,
        mark=mark,
    )
