"""Windows that share values with others, at other places in them: found by hashes of runs of values, as near-copies of texts are
(Schleimer, Wilkerson and Aiken: Winnowing, SIGMOD 2003)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import Floats, Integers

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
