"""TW1018 rows-measured-twice: evaluated rows are training rows once more: copies, overlapping windows, interpolated, of one group, near.

Why it matters: The same person, machine or moment is in both sets: rows were repeated before the split, measured twice or cut
into overlapping pieces, and the held-out score says nothing of new ones.
Evidence: The evaluated rows that were trained on, value by value; those that share values with training rows at other places, on
both sides, which windows of a series do that were dealt out at random, and those at the border between two times do not; those on
the straight line between two training rows, which measured rows never are; a column of the script's table whose groups have one
label each and lie on both sides, and how often the nearest training row has the label with and without its own group (a note: of
groups that are finer classes, and of which no new ones will come, this is no fault); the distance from each evaluated row to the nearest
training row, as the model receives them, beside the same among the training rows.
Fix (manual): Split first, by what the rows are of (person, machine, day, source), and repeat or interpolate rows of the training
set alone. Split a series by time, or leave a gap of a window's length between the sets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.probes.ridge import squared_distances, standardise
from trainwright.rehearsal.record import Floats, Record
from trainwright.review.both_sides import count_between, shared_groups, shared_shares
from trainwright.review.rows import AnsweredRows, evaluated_rows, held_out_rows

# Near: this share of the usual distance to the nearest row. So many of the evaluated rows are, and three times as many as among
# the training rows themselves.
NEAR, NEAR_SHARE, TIMES = 0.35, 0.15, 3.0
FEWEST_ROWS, FEWEST_COLUMNS, MOST_ROWS, MOST_COLUMNS = 40, 6, 1000, 512
# Copies: so many at least, and this share; of a pass over all rows, training's and others, more are known.
FEWEST_COPIES, LEAST_COPIES, MOST_COPIES = 10, 0.05, 0.6
# The rows that could be told apart, as a power of 2: fewer are near each other by themselves.
FEWEST_BITS = 20.0
# Windows that are looked up. Of two that begin half a window apart, half of the values are shared, and a few less of their runs.
MOST_WINDOWS, SHARED = 500, 1 / 3
# Interpolated rows lie on lines of their own: so many directions a row.
FEWEST_DIRECTIONS = 0.25


@rule("TW1018", Severity.WARNING)
def rows_measured_twice(record: Record) -> Iterator[Finding]:
    """Evaluated rows beside training rows, in each held-out set."""
    copies = next((one for rows in evaluated_rows(record) if (one := _copies(record, rows)) is not None), None)
    if copies is not None:
        yield copies
        return
    sets = [(rows, *both) for rows in held_out_rows(record) if (both := _both_sides(record, rows)) is not None]
    again = next((one for of_set in sets if (one := _windows(*of_set) or _between(*of_set))), None)
    groups = [] if again is not None else [one for of_set in sets[:1] for one in _groups(record, of_set[0])]
    yield from [again] if again is not None else groups[:1] or _neighbours(sets)


def _both_sides(record: Record, rows: AnsweredRows) -> tuple[Floats, Floats] | None:
    """Rows that were trained on, and evaluated ones beside them; None: they are not known, or rows of several trainings."""
    stored = record.trained_rows.get(rows.output)
    inputs = [one.inputs for one in rows.calls if one.inputs is not None]
    is_earlier = bool(record.trainings) and rows.update <= record.trainings[-1].begins
    if stored is None or not inputs or is_earlier or any(one.shape[1:] != stored[0].shape[1:] for one in inputs):
        return None
    return stored[0], np.concatenate(inputs)[:MOST_ROWS]


def _neighbours(sets: list[tuple[AnsweredRows, Floats, Floats]]) -> list[Finding]:
    """Evaluated rows that lie nearer to training rows than those to each other."""
    found: list[Finding] = []
    for rows, train, test in sets:
        train = train[:, :MOST_COLUMNS]
        if min(len(test), len(train)) < FEWEST_ROWS or not _are_rich(train):
            continue
        test = _without_copies(train, test[:, :MOST_COLUMNS])
        if len(test) < FEWEST_ROWS:
            continue
        near, natural = _near_shares(train, test)
        if near <= NEAR_SHARE + TIMES * natural:
            return []  # one set that is apart is enough to be judged by
        found.append(
            Finding(
                message=f"{near:.0%} of {len(test):,} evaluated rows lie next to a training row; among training rows "
                f"{natural:.0%} lie so near to each other",
                measured={"near": near, "near_among_training": natural, "rows": len(test)},
                where=rows.where,
                proof=Proof(f"distances between the rows that the model received; near is {NEAR:.0%} of the usual one"),
                fix=Fix(does="split by what the rows are of (person, machine, day, source), not row by row"),
            )
        )
    return found[:1]


def _copies(record: Record, rows: AnsweredRows) -> Finding | None:
    """Some of the evaluated rows are training rows, value by value; where nearly all are, it is a pass over training rows."""
    stored = record.trained_rows.get(rows.output)
    is_of_training = not rows.is_held_out and rows.calls[0].data  # a pass over the very set that is trained on
    if stored is None or is_of_training or not _are_rich(stored[0][:, :MOST_COLUMNS]):
        return None
    seen = {
        one.update for one in record.answers if not one.trains
    }  # an attack takes gradients of evaluated rows, at the evaluation
    elsewhere = [
        one.keys
        for one in record.answers
        if one.trains and one.model == rows.model and one.keys is not None and one.update not in seen
    ]
    trained = {key for of_call in elsewhere for key in of_call.tolist()}
    calls = [one.keys.tolist() for one in rows.calls if one.keys is not None]
    shares = [sum(key in trained for key in of_call) / max(1, len(of_call)) for of_call in calls]
    # A table that is answered whole, and holds what was trained on, is the training set beside the held-out one.
    keys = [k for of, share in zip(calls, shares) if len(of) < FEWEST_ROWS or share <= MOST_COPIES for k in of]
    known = sum(key in trained for key in keys)
    share = known / max(1, len(keys))
    if len(keys) < FEWEST_ROWS or known < FEWEST_COPIES or not LEAST_COPIES <= share <= MOST_COPIES:
        return None
    again = f", {len(set(keys)):,} of them different," if len(set(keys)) < (1 - LEAST_COPIES) * len(keys) else ""
    return Finding(
        message=f"{known:,} of {len(keys):,} evaluated rows{again} are copies of rows that were trained on",
        measured={"copies": known, "rows": len(keys), "distinct": len(set(keys))},
        where=rows.where,
        proof=Proof("the values of each row, as the model received it in training and in the last evaluation"),
        fix=Fix(does="split first, then repeat or balance rows in the training set alone"),
    )


def _windows(rows: AnsweredRows, train: Floats, test: Floats) -> Finding | None:
    """Many evaluated rows share values, shifted, with training rows on both sides: where time divides the sets, those at the
    border do with one side."""
    test = test[:MOST_WINDOWS]
    own = _without_copies(train, test)
    if len(own) < max(FEWEST_ROWS, (1 - LEAST_COPIES) * len(test)) or test.shape[1] < FEWEST_COLUMNS:
        return None  # too few, or a pass over training rows, too
    before, behind = shared_shares(train, own)
    between, share = np.minimum(before, behind) >= SHARED, np.maximum(before, behind)
    if between.sum() < FEWEST_COPIES or between.mean() < LEAST_COPIES:
        return None
    shared = share >= SHARED
    return Finding(
        message=f"{shared.sum():,} of {len(own):,} evaluated rows share values, shifted, with a training row, "
        f"in the median {np.median(share[shared]):.0%} of them: windows of one series are in both sets",
        measured={"windows": int(shared.sum()), "rows": len(own), "shared": float(np.median(share[shared]))},
        where=rows.where,
        proof=Proof("the values of each row, as the model received it, at any place of a training row"),
        fix=Fix(does="split by time or by recording first, or leave a gap of a window's length between the sets"),
    )


def _between(rows: AnsweredRows, train: Floats, test: Floats) -> Finding | None:
    """Some evaluated rows lie on the straight line between two training rows."""
    if test.shape[1] < FEWEST_COLUMNS or not (np.isfinite(train).all() and np.isfinite(test).all()):
        return None
    between, directions = count_between(train, test)
    if directions < max(FEWEST_COPIES, FEWEST_DIRECTIONS * between):
        return None
    return Finding(
        message=f"{between:,} of {len(test):,} evaluated rows lie on the straight line between two training rows: rows were "
        f"interpolated or mixed before the split",
        measured={"between": between, "rows": len(test)},
        where=rows.where,
        proof=Proof("the values of each row, as the model received it, beside those of pairs of training rows"),
        fix=Fix(does="split first, then interpolate (SMOTE) or mix rows of the training set alone"),
    )


def _groups(record: Record, rows: AnsweredRows) -> Iterator[Finding]:
    """The label of evaluated rows is known from training rows of the same group."""
    for one in shared_groups(record, rows):
        yield Finding(
            message=f"{one.share:.0%} of the evaluated rows are of a group ({one.name}) that is trained on, and each group has one "
            f"label: the nearest training row has the label of {one.right:.0%} of them, of another group {one.right_without:.0%}",
            severity=Severity.NOTE,  # of finer classes, of which no new ones come, this is no fault
            measured={"share": one.share, "right": one.right, "right_of_another_group": one.right_without},
            where=rows.where,
            proof=Proof(f"the column {one.name} of the script's table beside the rows that the model received"),
            fix=Fix(does=f"split by {one.name} (GroupShuffleSplit, GroupKFold), not row by row"),
        )


def _are_rich(train: Floats) -> bool:
    """Whether rows are of real numbers, and of so many that equal ones are no chance."""
    live = train[:, train.std(0) > 1e-8]
    if live.shape[1] < FEWEST_COLUMNS or not np.isfinite(live).all():
        return False
    with np.errstate(all="ignore"):
        if _are_counts(live) or _are_counts(np.expm1(live)):
            return False
    sample = live[:200, :200]
    return sum(float(np.log2(len(np.unique(column)))) for column in sample.T) > FEWEST_BITS


def _without_copies(train: Floats, test: Floats) -> Floats:
    """The evaluated rows that are no training row: a pass over training rows is no leak."""
    known = {row.tobytes() for row in train}
    return test[[row.tobytes() not in known for row in np.ascontiguousarray(test)]]


def _are_counts(values: Floats) -> bool:
    """Whether these are whole numbers, as the tokens of a row are counted (in logarithms)."""
    return bool((np.abs(values - np.round(values)) < 1e-3).all())


def _near_shares(train: Floats, test: Floats) -> tuple[float, float]:
    deviation = train.std(0)
    live = deviation > 1e-8
    mean = train[:, live].mean(0)
    one, other = (standardise(x[:, live], mean, deviation[live]).astype(np.float64) for x in (train, test))
    sample = one[:MOST_ROWS]
    own = _distances(sample, one)
    own[np.arange(len(sample)), np.arange(len(sample))] = np.inf
    nearest = own.min(1)
    usual = float(np.median(nearest))
    return float((_distances(other, one).min(1) < NEAR * usual).mean()), float((nearest < NEAR * usual).mean())


def _distances(one: Floats, other: Floats) -> Floats:
    found: Floats = np.sqrt(np.maximum(0, squared_distances(one, other)))
    return found
