"""The profile: what a constant, a simple learner on the received and on the raw row, and the model reach on the same labels.

A column that repeats the label is not counted. The mark accuses nobody: to leave a column out may be meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core.sheet import PROFILE, Row
from trainwright.probes.ridge import ridge
from trainwright.rehearsal.record import Floats, Integers, LabelKind, Output, Record
from trainwright.rehearsal.record_parts import RawRows
from trainwright.review.learner import (
    ERRORS,
    FEWEST_ROWS,
    GAIN,
    MOST_TRAINED,
    ROOM_SHARE,
    SHRINKS_ROWS,
    left_out_scores,
    prepare_columns,
)
from trainwright.review.rows import AnsweredRows, evaluated_rows, mixes_rows, trained_rows
from trainwright.review.scores import errors_of

# A column repeats the label if one of them alone tells so much of the other.
REPEATS = 0.9
# A column is among the inputs if they tell so much of it linearly; it carries something if it alone tells so much of the label.
AMONG_INPUTS, CARRIES = 0.5, 0.05
# Columns with at most this share of different values are groups of equal ones; otherwise so many neighbours on each side answer.
GROUPED, SIDE = 0.1, 3
# Columns of more numbers are texts and pictures: they neither repeat a label nor are they looked for in the inputs.
WIDE, MOST_CLASSES, MOST_NAMED = 64, 100, 3
# With permuted labels a learner may not seem better than a constant by more; a planted label has to close so much of the room.
BY_CHANCE, PLANTED = 0.08, 0.5


@dataclass(frozen=True, kw_only=True)
class _Joined:
    """The same rows as the script held them, as the model received them, and as the loss got their labels."""

    raw: dict[str, Floats]
    received: Floats
    labels: NDArray[Any]


def profiles(record: Record) -> tuple[Row, ...]:
    """A row for each output that does not learn, or of which the raw rows clearly tell more than the received ones."""
    found: dict[Output, Row] = {}
    for rows in [*evaluated_rows(record), *trained_rows(record)]:
        if rows.output in found or mixes_rows(record) or not _is_readable(rows.output):
            continue
        for raw in record.raw:
            joined = _join(record, raw, rows.output)
            made = None if joined is None else _profile(rows, joined)
            if made is not None and (made.mark or not rows.learned):
                found[rows.output] = made
                break
    return tuple(found.values())


def _is_readable(output: Output) -> bool:
    return output.width <= (MOST_CLASSES if output.kind == LabelKind.CLASSES else 1)


def _join(record: Record, raw: RawRows, output: Output) -> _Joined | None:
    """By the rows' numbers, and by their keys; None: too few rows are known in each way."""
    stored = record.trained_rows.get(output)
    if stored is None:
        return None
    inputs, _, keys = stored
    of_key = {key: place for place, key in enumerate(keys.tolist())}
    of_number = {number: place for place, number in enumerate(raw.numbers.tolist())}
    labels: dict[int, Any] = {}
    received: dict[int, int] = {}
    for one in record.answers:
        if not one.trains or one.output != output or one.data != raw.data or one.numbers is None or one.keys is None:
            continue
        for number, key, label in zip(one.numbers.tolist(), one.keys.tolist(), one.labels, strict=False):
            if number in of_number and key in of_key:
                if number in labels and not np.array_equal(labels[number], label):
                    return None  # a row without one label
                labels[number], received[number] = label, of_key[key]
    chosen = sorted(labels)
    if len(chosen) < FEWEST_ROWS:
        return None
    spread = np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_TRAINED)).astype(np.int64))
    chosen = [chosen[place] for place in spread.tolist()]
    places: Integers = np.array([of_number[number] for number in chosen], dtype=np.int64)
    columns = {name: _filled(values[places]) for name, values in raw.columns.items()}
    return _Joined(
        raw={name: values for name, values in columns.items() if values.std(0).max() > 0},
        received=inputs[[received[number] for number in chosen]].astype(np.float64),
        labels=np.stack([labels[number] for number in chosen]),
    )


def _filled(values: Floats) -> Floats:
    """With the column's mean where a number is missing."""
    wide = values.astype(np.float64)
    known = np.isfinite(wide)
    mean = np.where(known, wide, 0).sum(0) / np.maximum(known.sum(0), 1)
    filled: Floats = np.where(known, wide, mean)
    return filled


def _profile(rows: AnsweredRows, joined: _Joined) -> Row | None:
    output, labels = rows.output, joined.labels
    measure = "R2" if output.kind == LabelKind.NUMBERS else "accuracy"
    model = rows.score(measure)
    target = _target(output, labels)
    if model is None or (rows.learned and 1 - model.value < GAIN):
        return None
    if target.std(0).max() == 0 or not np.isfinite(joined.received).all():
        return None
    repeats = [name for name, values in joined.raw.items() if _repeats(output, values, target)]
    counted = {name: values for name, values in joined.raw.items() if name not in repeats}
    if not counted:
        return None
    constant = 0.0 if output.kind == LabelKind.NUMBERS else float(target.mean(0).max())
    received = _best(output, [joined.received], labels)
    alone = np.concatenate(list(counted.values()), 1)
    raw = _best(output, [alone, _beside(alone, joined.received)], labels)
    room = 1.0 - max(float(received.mean()), constant)
    gain = float((raw - received).mean())
    is_more = (
        gain >= max(GAIN, ROOM_SHARE * room)
        and errors_of(raw - received) >= ERRORS
        and float(raw.mean()) - max(model.value, constant) >= GAIN
        and _are_controlled(output, alone, joined, constant)
    )
    carriers = _carriers(output, counted, joined, target, constant) if is_more else []
    is_more = bool(carriers)
    if not is_more and float(raw.mean()) < constant + CARRIES and not repeats:
        return None  # nothing shows that the raw rows are in the set's order
    return PROFILE.row(
        name=measure,
        output=str(output),
        rows=len(labels),
        constant=constant,
        raw=float(raw.mean()),
        received=float(received.mean()),
        model=float(model.value),
        not_counted=tuple(repeats[:MOST_NAMED]),
        carriers=tuple(carriers),
        mark=f"the raw row tells more: {', '.join(carriers)}" if is_more else "",
    )


def _target(output: Output, labels: NDArray[Any]) -> Floats:
    """Labels as numbers: a column for each class."""
    flat = labels.reshape(-1)
    if output.kind == LabelKind.NUMBERS:
        return flat[:, None].astype(np.float64)
    flat = flat > 0.5 if output.kind == LabelKind.BINARY else flat
    wide: Floats = (flat[:, None] == np.unique(flat)[None]).astype(np.float64)
    return wide


def _best(output: Output, tables: list[Floats], labels: NDArray[Any]) -> Floats:
    """Row by row, the score of the learner that is best on the whole; each row is answered without itself."""
    every = [scores for table in tables for scores in left_out_scores(output, table, labels)]
    return max(every, key=lambda one: float(one.mean())) if every else np.zeros(len(labels))


def _beside(table: Floats, other: Floats) -> Floats:
    """Both, with the same weight: the wider one does not drown the other."""
    both = [one / np.sqrt(one.shape[1]) for one in map(prepare_columns, (table, other)) if one is not None]
    joined: Floats = np.concatenate(both, 1) if both else table
    return joined


def _repeats(output: Output, values: Floats, target: Floats) -> bool:
    """Whether a column tells the label by itself, or the label the column."""
    if values.shape[1] > WIDE:
        return False
    code = _code(values)
    if _told(code, target) >= REPEATS:
        return True
    label = target[:, 0] if output.kind == LabelKind.NUMBERS else target.argmax(1).astype(np.float64)
    return _told(label, values) >= REPEATS


def _code(values: Floats) -> Floats:
    """One number for each value of a column."""
    return values[:, 0] if values.shape[1] == 1 else values.argmax(1).astype(np.float64)


def _told(column: Floats, target: Floats) -> float:
    """The share of the target's variance that the rows with the nearest values of one column tell, each row left out."""
    generator = np.random.default_rng(0)  # its own: no state of the script's; rows of equal values in no order
    mixed = generator.permutation(len(column))
    order = mixed[np.argsort(column[mixed], kind="stable")]
    sorted_target, total = target[order], target.var(0).sum()
    if total <= 0:
        return 0.0
    different, inverse, counts = np.unique(column[order], return_inverse=True, return_counts=True)
    if len(different) <= max(2, GROUPED * len(column)):
        sums = np.zeros((len(different), target.shape[1]))
        np.add.at(sums, inverse, sorted_target)
        others = counts[inverse][:, None] - 1
        guess = np.where(others > 0, (sums[inverse] - sorted_target) / np.maximum(others, 1), target.mean(0))
    else:
        padded = np.concatenate([sorted_target[SIDE:0:-1], sorted_target, sorted_target[-2 : -SIDE - 2 : -1]])
        shifts = [i for i in range(2 * SIDE + 1) if i != SIDE]
        guess = np.mean([padded[i : i + len(column)] for i in shifts], axis=0)
    return 1 - float(((guess - sorted_target) ** 2).mean(0).sum() / total)


def _carriers(
    output: Output, counted: dict[str, Floats], joined: _Joined, target: Floats, constant: float
) -> list[str]:
    """The columns that tell most of the label and that the received rows do not tell."""
    found = []
    for name, values in counted.items():
        if values.shape[1] > WIDE:
            found.append((float(_best(output, [values], joined.labels).mean()) - constant, name))
        else:
            found.append((_told(_code(values), target), name))
    worth = [(value, name) for value, name in sorted(found, reverse=True) if value >= CARRIES]
    narrow = [name for _, name in worth if counted[name].shape[1] <= WIDE]
    arrived = _arrived(joined.received, [counted[name] for name in narrow])
    known = {name for name, share in zip(narrow, arrived, strict=True) if share >= AMONG_INPUTS}
    return [name for _, name in worth if name not in known][:MOST_NAMED]


def _arrived(received: Floats, columns: list[Floats]) -> list[float]:
    """How much of each column a ridge regression on the received rows tells, each row left out."""
    rows = prepare_columns(received)
    if rows is None or not columns:
        return [0.0] * len(columns)
    centred = [values - values.mean(0) for values in columns]
    _, missed = ridge(rows @ rows.T, np.concatenate(centred, 1), len(rows) * SHRINKS_ROWS)
    errors = np.split(missed, np.cumsum([one.shape[1] for one in centred])[:-1], 1)
    return [1 - float((e**2).sum() / max(float((c**2).sum()), 1e-12)) for e, c in zip(errors, centred)]


def _are_controlled(output: Output, raw: Floats, joined: _Joined, constant: float) -> bool:
    """Whether the raw rows tell nothing of permuted labels, and a label planted in the received ones would be found."""
    generator = np.random.default_rng(1)  # its own: no state of the script's
    permuted = joined.labels[generator.permutation(len(joined.labels))]
    if float(_best(output, [raw, _beside(raw, joined.received)], permuted).mean()) > constant + BY_CHANCE:
        return False
    target = _target(output, joined.labels)
    noisy = target + 0.3 * target.std(0) * generator.standard_normal(target.shape)
    found = float(_best(output, [_beside(noisy, joined.received)], joined.labels).mean())
    return found - constant >= PLANTED * (1 - constant)
