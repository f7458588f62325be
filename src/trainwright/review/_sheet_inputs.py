"""The inputs of a sheet: what the model receives, in training and on held-out rows."""

from __future__ import annotations

import numpy as np

from trainwright.core.sheet import HELD_OUT, INPUTS, TRAINING, Row
from trainwright.rehearsal.record import TOKEN_GROUPS, Floats, Record, Source

# Columns that are shown one by one: those of a picture are not.
MOST_COLUMNS = 20
# Fewer rows say nothing of a set.
FEWEST_ROWS = 10
# Deviations between the means of two sets, ratio of their deviations, and ratio of a column's deviation to the others' in the
# median, that stand out: rows of one source are far below.
OTHER_SCALED = "another scale than in training"
FAR, OTHER_SCALE, UNSCALED = 3.0, 3.0, 1000.0


def columns(record: Record) -> tuple[Row, ...]:
    """The model's inputs in training and on held-out rows; one by one if they are few."""
    if not record.trained_rows:
        return ()
    training = max((rows[0] for rows in record.trained_rows.values()), key=len).astype(np.float64)
    held = [
        one.inputs.astype(np.float64)
        for one in record.answers
        if not one.trains and one.inputs is not None and one.inputs.shape[1:] == training.shape[1:]
        if one.source != Source.DIFFERENCE  # states that a policy meets are no set
    ]
    others = np.concatenate(held) if held else training[:0]
    width = training.shape[1]
    if width > MOST_COLUMNS:
        return tuple(
            _both(
                f"{width:,} counts of tokens" if _are_counts(training) else f"all {width:,} columns",
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


def _are_counts(rows: Floats) -> bool:
    """Whether these are the counts of token ids, which stand for the ids."""
    counts = np.expm1(rows)
    return rows.shape[1] == TOKEN_GROUPS and bool(np.allclose(counts, np.round(counts), atol=1e-3))


def _both(name: str, training: Floats, held: Floats, rows: int, held_rows: int, usual: float) -> list[Row]:
    mean, spread = _spread(training)
    missing = float(np.mean(~np.isfinite(training)))
    mark = "missing values" if missing else "always the same" if spread == 0 and rows >= FEWEST_ROWS else ""
    if not mark and usual and spread > UNSCALED * usual:
        mark = "a far larger scale than the others"
    made = [_column(name, TRAINING, training, rows, mark)]
    if held_rows:
        other_mean, other_spread = _spread(held)
        missing_here, far = float(np.mean(~np.isfinite(held))), ""
        if spread > 0 and held_rows >= FEWEST_ROWS and rows >= FEWEST_ROWS:
            scale = other_spread > OTHER_SCALE * spread or other_spread * OTHER_SCALE < spread
            far = OTHER_SCALED if scale or abs(other_mean - mean) > FAR * spread else ""
        made.append(_column(name, HELD_OUT, held, held_rows, "missing values" if missing_here and not missing else far))
    return made


def _spread(values: Floats) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 0.0)


def _column(name: str, rows_of: str, values: Floats, rows: int, mark: str) -> Row:
    finite = values[np.isfinite(values)]
    mean, spread = _spread(values)
    return INPUTS.row(
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
