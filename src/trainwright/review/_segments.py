"""Rows on the straight line between two others, as interpolated rows are (Chawla et al.: SMOTE, JAIR 2002; Zhang et al.: mixup,
ICLR 2018)."""

from __future__ import annotations

import numpy as np

from trainwright.rehearsal.record import Floats

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
