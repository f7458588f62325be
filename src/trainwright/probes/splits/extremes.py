"""Rows whose value is so far from all others that one of them outweighs the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainwright.stages.rows import Extremes

# How many times further from the median than the furthest other row. The largest of a thousand draws from a lognormal
# distribution of sigma 2 is 4 times as far as the fifth largest; the largest income, price or count is not 100 times.
TIMES = 100.0
# At most this share of the rows is extreme; if they all have the same value, such as -999 for "unknown", this many.
FEW, SAME = 0.005, 0.2
FEWEST_ROWS = 40
# The other rows must vary: a column of zeros with a single 1 is an ordinary indicator.
FEWEST_VALUES = 5
MOST_FEATURES = 4096
MOST_NAMED = 1000
# Rows for the quartiles, and features that are looked at in every row.
SAMPLED, LOOKED_AT = 2000, 20
# Numbers that are copied at a time.
AT_A_TIME = 4_000_000


def extreme_rows(name: str, values: np.ndarray, rows: Sequence[int]) -> Extremes | None:
    """The rows of a column that are far from all others, in the feature where they are furthest; None if there are none.

    Args:
        values: (rows,) or (rows, ...); in rows of several axes or of many features the largest value counts.
        rows: the number of each row.
    """
    if len(values) < FEWEST_ROWS or values.dtype.kind not in "iuf" or not values[0].size:
        return None
    table, kept = _reduced(values), np.arange(len(values))
    if not (np.isfinite(table.min(axis=0)).all() and np.isfinite(table.max(axis=0)).all()):
        kept = np.flatnonzero(np.isfinite(table).all(axis=1))
        table = table[kept]
    if len(table) < FEWEST_ROWS:
        return None
    columns = ((feature, table[:, feature].astype(np.float64)) for feature in _suspected(table))
    found = [(one, feature) for feature, column in columns if (one := _in_feature(column)) is not None]
    if not found:
        return None
    (times, chosen), feature = max(found, key=lambda pair: pair[0][0])
    column = table[:, feature]
    others = column[~chosen]
    where = np.flatnonzero(chosen)
    return Extremes(
        column=name,
        feature=int(feature) if values.ndim == 2 and table.shape[1] > 1 else None,
        rows=tuple(rows[int(kept[i])] for i in where[:MOST_NAMED]),
        count=len(where),
        counted=len(values),
        value=float(column[where[0]]),
        low=float(others.min()),
        high=float(others.max()),
        times=times,
    )


def _reduced(values: np.ndarray) -> np.ndarray:
    """(rows, features); of rows with several axes or many features the largest magnitude, with its sign."""
    flat = values.reshape(len(values), -1)
    if values.ndim <= 2 and flat.shape[1] <= MOST_FEATURES:
        return flat
    largest = np.empty((len(flat), 1))
    step = max(1, AT_A_TIME // flat.shape[1])
    for start in range(0, len(flat), step):
        part = flat[start : start + step]
        at = np.abs(part).argmax(axis=1)[:, None]
        largest[start : start + step] = np.take_along_axis(part, at, axis=1)
    return largest


def _suspected(table: np.ndarray) -> list[int]:
    """The features whose extremes are furthest, in units of half the distance between the quartiles."""
    sample = table[:: len(table) // SAMPLED + 1].astype(np.float64)
    low, middle, high = np.percentile(sample, (25, 50, 75), axis=0)
    reach = np.maximum(table.max(axis=0) - middle, middle - table.min(axis=0))
    half = (high - low) / 2
    ratio = np.divide(reach, half, out=np.zeros_like(reach), where=half > 0)
    order = np.argsort(ratio)[::-1][:LOOKED_AT]
    return [int(i) for i in order if ratio[i] >= TIMES]


def _in_feature(column: np.ndarray) -> tuple[float, np.ndarray] | None:
    """How many times further than the others, and which rows; None if nothing is."""
    distance = np.abs(column - np.median(column))
    most = max(1, int(FEW * len(column)))
    furthest = np.sort(np.partition(distance, len(column) - 1 - most)[len(column) - 1 - most :])
    gaps = np.divide(furthest[1:], furthest[:-1], out=np.zeros(most), where=furthest[:-1] > 0)
    chosen = distance >= furthest[1 + int(gaps.argmax())]
    times = float(gaps.max())
    if times < TIMES:
        chosen = column == column[distance.argmax()]
        rest = float(distance[~chosen].max()) if not chosen.all() else 0.0
        times = float(distance.max()) / rest if rest and chosen.mean() <= SAME else 0.0
    if times < TIMES or np.unique(column[~chosen][:1000]).size < FEWEST_VALUES:
        return None
    return times, chosen
