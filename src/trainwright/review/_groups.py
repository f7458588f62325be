"""Groups of rows (one patient, speaker or recording each) that lie on both sides and carry the label: leave-one-group-out, as in
Saeb et al.: The need to approximate the use-case in clinical machine learning, GigaScience 2017."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import Answers, Floats, Integers, Kind, Record
from trainwright.review._rows import Rows

# Groups a class, rows that are known, and the share of the evaluated rows whose group is trained on: with few groups a class they
# may be finer classes.
FEWEST_GROUPS, FEWEST_ROWS, SHARED = 10, 40, 0.5
# The nearest training row is mostly of the same group. Without it, its label is right so much more rarely, and less than half of
# what it was above a constant answer.
SAME, LOSES, LEFT = 0.5, 0.15, 0.5

_Grouped = tuple[Floats, NDArray[Any], Integers]


class Shared(NamedTuple):
    """A column whose groups lie on both sides."""

    name: str
    share: float
    """Of the evaluated rows, of a group that is trained on; and below, how often the nearest training row has their label."""
    right: float
    right_without: float
    """The same without the rows of their own group."""


def shared_groups(record: Record, rows: Rows) -> Iterator[Shared]:
    """The columns of groups that carry the label from training to evaluated rows."""
    stored = record.trained_rows.get(rows.output)
    if (
        stored is None
        or rows.output.kind == Kind.NUMBERS
        or (rows.output.kind == Kind.BINARY and rows.output.width > 1)
    ):
        return
    inputs, labels, keys = stored
    place = {key: at for at, key in enumerate(keys.tolist())}
    calls = [one for one in record.answers if one.trains and one.output == rows.output]
    numbers = {(one.data, n): place[k] for one in calls for _, n, k in _named(one) if k in place}
    asked = [(one.data, *named) for one in rows.calls if one.inputs is not None for named in _named(one)]
    for name in {name for raw in record.raw for name, _ in raw.groups}:
        groups = {
            (raw.data, n): group
            for raw in record.raw
            if name in dict(raw.groups)
            for n, group in zip(raw.numbers.tolist(), dict(raw.groups)[name].tolist(), strict=True)
        }
        known = {at: groups[named] for named, at in numbers.items() if named in groups}
        new = [
            (row, groups[data, n]) for data, row, n, k in asked if (data, n) in groups and k not in record.trained_keys
        ]
        if min(len(known), len(new)) >= FEWEST_ROWS:
            train = inputs[list(known)], labels[list(known)].reshape(-1), np.array(list(known.values()))
            test = np.stack([x for (x, _), _ in new]), np.array([y for (_, y), _ in new]).reshape(-1)
            found = _judge(name, train, (*test, np.array([group for _, group in new])))
            if found is not None:
                yield found


def _named(call: Answers) -> Iterator[tuple[tuple[Any, Any], int, int]]:
    """Each row of a call with its label, its number and its key, where they are known."""
    if call.numbers is not None and call.keys is not None:
        rows = call.inputs if call.inputs is not None else call.labels
        yield from zip(zip(rows, call.labels, strict=True), call.numbers.tolist(), call.keys.tolist(), strict=True)


def _judge(name: str, train: _Grouped, test: _Grouped) -> Shared | None:
    """Rows, their labels and groups."""
    (known, known_labels, known_groups), (rows, labels, groups) = train, test
    label_of = dict(zip(known_groups.tolist(), known_labels.tolist(), strict=True))
    _, counts = np.unique(list(label_of.values()), return_counts=True)
    share = float(np.isin(groups, known_groups).mean())
    pairs = [*zip(known_groups.tolist(), known_labels.tolist()), *zip(groups.tolist(), labels.tolist())]
    if (
        share < SHARED
        or len(counts) < 2
        or counts.min() < FEWEST_GROUPS
        or any(label_of.get(g, y) != y for g, y in pairs)
    ):
        return None
    live = known.std(0) > 1e-8
    one, other = (each[:, live] / known.std(0)[live] for each in (known, rows))
    squares = (other**2).sum(1)[:, None] - 2 * other @ one.T + (one**2).sum(1)
    nearest, strange = squares.argmin(1), np.where(groups[:, None] == known_groups, np.inf, squares).argmin(1)
    right, without = (float((known_labels[at] == labels).mean()) for at in (nearest, strange))
    constant = float(np.unique(labels, return_counts=True)[1].max() / len(labels))
    same = float((known_groups[nearest] == groups).mean())
    if same < SAME or right - without < LOSES or without - constant > LEFT * (right - constant):
        return None
    return Shared(name, share, right, without)
