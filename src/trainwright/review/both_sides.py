"""Rows that lie on both sides of a split in other ways than as equal rows: as windows of one series, as rows between two others, and
as rows of one group.

Windows that share values at other places in them are found by hashes of runs of values, as near-copies of texts are (Schleimer,
Wilkerson and Aiken: Winnowing, SIGMOD 2003). Rows on the straight line between two others are interpolated ones (Chawla et al.: SMOTE,
JAIR 2002; Zhang et al.: mixup, ICLR 2018). Groups of rows (one patient, speaker or recording each) that carry the label are judged by
leaving one out, as in Saeb et al.: The need to approximate the use-case in clinical machine learning, GigaScience 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwright.probes.ridge import squared_distances
from trainwright.rehearsal.record import Answers, Floats, Integers, Record
from trainwright.review.rows import AnsweredRows

# Values of a run, of which so many differ, and runs of a row that are looked up: those whose hash says so, wherever they lie.
RUN, DIFFERENT, RUNS_OF_ROW = 4, 3, 64
# Fewer runs tell nothing, nor do runs that leave more than this share of the row at an end of it.
FEWEST_RUNS, END = 4, 1 / 8
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class _Runs(NamedTuple):
    """Runs of values in rows: in which row, where it begins, and a hash of its values."""

    rows: Integers
    places: Integers
    hashes: NDArray[np.uint64]

    def at(self, chosen: NDArray[Any]) -> _Runs:
        """Some of them."""
        return _Runs(self.rows[chosen], self.places[chosen], self.hashes[chosen])


def shared_shares(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """For each row, the share of its runs that one training row has at earlier places in it, and one at later places.

    A run that several training rows have at the same place repeats by its nature (the hours of a day): it is not shared. Nor is
    any of a row whose ends hold none: a pattern may lie anywhere in silence.
    """
    known, asked = _runs(train), _runs(test)
    counts, wide = np.bincount(asked.rows, minlength=len(test)), train.shape[1]
    first, last = np.full(len(test), wide), np.zeros(len(test))
    np.minimum.at(first, asked.rows, asked.places)
    np.maximum.at(last, asked.rows, asked.places)
    is_full = (counts >= FEWEST_RUNS) & (first <= END * wide) & (last + RUN >= (1 - END) * wide)
    known, asked = (_without_repeated(one, known) for one in (known, asked))
    known = known.at(np.argsort(known.hashes, kind="stable"))
    begins = np.searchsorted(known.hashes, asked.hashes, "left")
    times = np.searchsorted(known.hashes, asked.hashes, "right") - begins
    of = np.repeat(np.arange(len(times)), times)
    met = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times) + begins[of]
    shifts = asked.places[of] - known.places[met]
    shares = []
    for is_side in (shifts > 0, shifts < 0):
        pairs = (asked.rows[of] * len(train) + known.rows[met]) * wide + np.abs(shifts)
        found, votes = np.unique(pairs[is_side], return_counts=True)
        best = np.zeros(len(test))
        np.maximum.at(best, found // (len(train) * wide), votes)
        shares.append(np.where(is_full, best / np.maximum(counts, 1), 0.0))
    return shares[0], shares[1]


def _runs(rows: Floats) -> _Runs:
    """The runs of rows that are chosen by their hash, so that the same are chosen wherever they lie."""
    values = np.ascontiguousarray(rows, np.float32) + np.float32(0)  # of two zeros, one
    wide = values.shape[1] - RUN + 1
    bits = values.view(np.uint32).astype(np.uint64)
    hashes = np.zeros((len(values), wide), np.uint64)
    for number in range(RUN):
        hashes = (hashes ^ bits[:, number : number + wide]) * _GOLDEN
        hashes ^= hashes >> np.uint64(29)
    at, places = np.nonzero(hashes % np.uint64(max(1, wide // RUNS_OF_ROW)) == 0)
    runs = np.sort(np.stack([values[at, places + number] for number in range(RUN)], 1), 1)
    differ = (np.diff(runs, axis=1) > 0).sum(1) >= DIFFERENT - 1
    return _Runs(at[differ], places[differ], hashes[at[differ], places[differ]])


def _without_repeated(runs: _Runs, known: _Runs) -> _Runs:
    """Without those that are at one place in several of the known rows."""
    _, places, hashes = known.at(np.lexsort((known.places, known.hashes)))
    repeated = hashes[1:][(hashes[1:] == hashes[:-1]) & (places[1:] == places[:-1])]
    return runs.at(~np.isin(runs.hashes, repeated))


# One end of the line is among so many nearest rows; columns that are compared, spread over the row.
NEAREST, MOST_COLUMNS = 20, 64
# A row is as far from the line as single precision rounds it, and this much of it. Rows of fewer dimensions, by the share of the
# largest, lie between each other by chance.
ROUNDINGS, FEWEST_DIMENSIONS, LEAST_DIMENSION = 8 * 2.0**-24, 4, 1e-3
# On a bent curve, the middle of three rows is half the product of its distances to both ends, over the radius, from their line: the
# product is so large that this would be seen up to a radius of 500 deviations.
LEAST_AREA = 1000
# So many columns at least hold a value that no training row has, as on a grid of values only interpolated ones do.
NEW_COLUMNS = 5


def count_between(train: Floats, test: Floats) -> tuple[int, int]:
    """How many rows lie between two training rows, and along how many different directions: signals of straight pieces have few."""
    ends, rows = train.astype(np.float64), test.astype(np.float64)
    live = np.flatnonzero(ends.std(0) > 1e-8)
    live = live[np.unique(np.linspace(0, len(live) - 1, min(len(live), MOST_COLUMNS)).astype(np.int64))]
    ends, rows = ends[:, live], rows[:, live]
    is_new = np.stack([~np.isin(mine, known) for mine, known in zip(rows.T, ends.T, strict=True)], 1)
    deviation = ends.std(0)
    far = ROUNDINGS * np.sqrt(((rows / deviation) ** 2).sum(1))
    ends, rows = ((one - ends.mean(0)) / deviation for one in (ends, rows))
    sizes = np.linalg.svd(ends, compute_uv=False)
    if (sizes > LEAST_DIMENSION * sizes[0]).sum() < FEWEST_DIMENSIONS:
        return 0, 0
    found = [_direction(ends, rows[at], far[at]) for at in np.flatnonzero(is_new.sum(1) >= NEW_COLUMNS)]
    ways = [way * np.sign(way[np.abs(way).argmax()]) for way in found if way is not None]
    return len(ways), len({tuple(np.round(way, 3).tolist()) for way in ways})


def _direction(ends: Floats, row: Floats, far: float) -> Floats | None:
    """The direction of the line between two of the ends from which the row is not farther."""
    ways = ends - row
    lengths = np.sqrt((ways**2).sum(1))
    nearest = np.argsort(lengths)
    nearest = nearest[lengths[nearest] > far]
    lengths = lengths[nearest]
    ways = ways[nearest] / lengths[:, None]
    cosines = ways[:NEAREST] @ ways.T
    areas = lengths[:NEAREST, None] * lengths
    heights = areas / (lengths[:NEAREST, None] + lengths) * np.sqrt(2 * np.maximum(0, 1 + cosines))
    between = np.flatnonzero(((heights < far) & (areas > LEAST_AREA * far)).any(1))
    if not len(between):
        return None
    way: Floats = ways[between[0]]
    return way if (np.abs(way) > LEAST_DIMENSION).sum() >= NEW_COLUMNS else None


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


def shared_groups(record: Record, rows: AnsweredRows) -> Iterator[Shared]:
    """The columns of groups that carry the label from training to evaluated rows."""
    stored = record.trained_rows.get(rows.output)
    if stored is None or not rows.output.is_single:
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
    squares = squared_distances(other, one)
    nearest, strange = squares.argmin(1), np.where(groups[:, None] == known_groups, np.inf, squares).argmin(1)
    right, without = (float((known_labels[at] == labels).mean()) for at in (nearest, strange))
    constant = float(np.unique(labels, return_counts=True)[1].max() / len(labels))
    same = float((known_groups[nearest] == groups).mean())
    if same < SAME or right - without < LOSES or without - constant > LEFT * (right - constant):
        return None
    return Shared(name, share, right, without)
