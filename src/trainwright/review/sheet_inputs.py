"""The inputs of a sheet: what the model receives, in training and on held-out rows."""

from __future__ import annotations

import numpy as np

from trainwright.core.sheet import HELD_OUT, INPUTS, TRAINING, Row
from trainwright.rehearsal.record import TOKEN_GROUPS, Floats, PairSource, Record

# Columns that are shown one by one: those of a picture are not.
MOST_COLUMNS = 20
# Fewer rows say nothing of a set.
FEWEST_ROWS = 10
# The logarithm of a count is below this: no row has so many tokens.
MOST_COUNTED = 30.0
# Deviations between the means of two sets, ratio of their deviations, and ratio of a column's deviation to the others' in the
# median, that stand out: rows of one source are far below.
FAR, OTHER_SCALE, UNSCALED = 3.0, 3.0, 1000.0


def columns(record: Record) -> tuple[Row, ...]:
    """The model's inputs in training and on held-out rows; one by one if they are few."""
    return tuple(row for trained, other in _pairs(record) for row in ((trained, other) if other.rows else (trained,)))


def scaled_otherwise(record: Record) -> list[tuple[Row, Row]]:
    """The inputs that have another scale on held-out rows than in training: their rows of both."""
    return [pair for pair in _pairs(record) if _is_scaled_otherwise(*pair)]


def _pairs(record: Record) -> list[tuple[Row, Row]]:
    """Each input in training and on held-out rows."""
    if not record.trained_rows:
        return []
    training = max((rows[0] for rows in record.trained_rows.values()), key=len).astype(np.float64)
    held = [
        one.inputs.astype(np.float64)
        for one in record.answers
        if not one.trains and one.inputs is not None and one.inputs.shape[1:] == training.shape[1:]
        if one.source != PairSource.DIFFERENCE  # states that a policy meets are no set
    ]
    others = np.concatenate(held) if held else training[:0]
    width, counts = training.shape[1], (len(training), len(others))
    if width > MOST_COLUMNS:
        name = f"{width:,} counts of tokens" if _are_counts(training) else f"all {width:,} columns"
        return [_both(name, training, others, counts, 0.0)]
    spreads = [spread for i in range(width) if (spread := _spread(training[:, i])[1]) > 0]
    usual = float(np.median(spreads or [0.0]))
    return [_both(f"column {i + 1}", training[:, i], others[:, i], counts, usual) for i in range(width)]


def _are_counts(rows: Floats) -> bool:
    """Whether these are the counts of token ids, which stand for the ids."""
    if rows.shape[1] != TOKEN_GROUPS or rows.max(initial=0.0) > MOST_COUNTED:
        return False
    counts = np.expm1(rows)
    return bool(np.allclose(counts, np.round(counts), atol=1e-3))


def _both(name: str, training: Floats, held: Floats, counts: tuple[int, int], usual: float) -> tuple[Row, Row]:
    trained, other = _column(name, TRAINING, training, counts[0]), _column(name, HELD_OUT, held, counts[1])
    if trained.missing:
        trained.mark = "missing values"
    elif not trained.deviation and trained.rows >= FEWEST_ROWS:
        trained.mark = "always the same"
    elif usual and trained.deviation > UNSCALED * usual:
        trained.mark = "a far larger scale than the others"
    if other.missing and not trained.missing:
        other.mark = "missing values"
    elif _is_scaled_otherwise(trained, other):
        other.mark = "another scale than in training"
    return trained, other


def _is_scaled_otherwise(trained: Row, other: Row) -> bool:
    """Whether a column has another scale on held-out rows, which lack no values that training has."""
    if not trained.deviation or other.deviation is None or min(trained.rows, other.rows) < FEWEST_ROWS:
        return False
    if other.missing and not trained.missing:
        return False
    ratio = other.deviation / trained.deviation
    is_scaled = ratio > OTHER_SCALE or ratio * OTHER_SCALE < 1
    return bool(is_scaled or abs(other.mean - trained.mean) > FAR * trained.deviation)


def _spread(values: Floats) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 0.0)


def _column(name: str, rows_of: str, values: Floats, rows: int) -> Row:
    finite = values[np.isfinite(values)]
    missing = 1 - finite.size / values.size if values.size else 0.0
    if not finite.size:
        return INPUTS.row(name=name, rows_of=rows_of, rows=rows, missing=missing)
    mean, spread = _spread(values)
    least, greatest = float(finite.min()), float(finite.max())
    return INPUTS.row(
        name=name,
        rows_of=rows_of,
        rows=rows,
        least=least,
        mean=mean,
        deviation=spread,
        greatest=greatest,
        missing=missing,
    )
