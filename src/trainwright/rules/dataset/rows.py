"""Rows that a step cannot use, and rows that are the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, role_of_split, rule
from trainwright.rules.fixes import unsafe
from trainwright.rules.repairs import leave_rows_out
from trainwright.stages import (
    UNTRIED,
    BadRow,
    BatchFacts,
    ColumnFacts,
    DatasetFacts,
    Extremes,
    OddRowFacts,
    Reading,
    SetupFacts,
    SourceCell,
    SplitFacts,
)

# Leaving out more than half of the rows is not a fix.
MOST_DROPPED_SHARE = 0.5


@rule("TW108", Severity.ERROR)
def non_finite_data(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Columns that reach the model with missing or non-finite values that training cannot handle."""
    for split in dataset.splits:
        outcome = dataset.unusable_rows.get(split.name, "")
        if not outcome:
            continue
        for column in split.columns:
            if _reaches(column, split, dataset) and (column.non_finite or column.missing):
                yield _unusable(column, split, outcome, setup)


def _reaches(column: ColumnFacts, split: SplitFacts, dataset: DatasetFacts) -> bool:
    label = split.labels.column if split.labels else None
    return column.name == label or column.name in dataset.accepts or column.name.isdigit()


def _unusable(column: ColumnFacts, split: SplitFacts, outcome: str, setup: SetupFacts) -> Finding:
    rows = sorted({*column.non_finite_rows, *column.missing_rows})
    parts = []
    if column.non_finite:
        parts.append(f"{column.non_finite} NaN or infinite {'value' if column.non_finite == 1 else 'values'}")
    if column.missing:
        parts.append(f"{column.missing} missing {'value' if column.missing == 1 else 'values'}")
    role = role_of_split(split.name)
    # The rows of a stream are numbered differently in the next pass.
    drop = split.kind == "map" and len(rows) <= MOST_DROPPED_SHARE * column.counted
    return Finding(
        message=f'the column "{column.name}" of the {split.name} set has {" and ".join(parts)} in {len(rows)} of '
        f"{column.counted} rows, first in row {rows[0]}",
        measured={"column": column.name, "rows": len(rows), "first_row": rows[0], "counted": column.counted},
        where=setup.place(role.made, role, Role.TRAINER),
        proof=Proof(
            f"counted over {column.counted} rows; {outcome}"
            if outcome.startswith(UNTRIED)
            else f"a training step on such rows, and not on others: {outcome}"
        ),
        repair=leave_rows_out(role, split.rows or column.counted, rows) if drop else None,
        fix=unsafe(f'drop or fill the {len(rows)} rows where "{column.name}" is missing or not finite'),
    )


# Batches of a fresh model differ in their loss by a small factor.
LARGER_LOSS = 10.0


@rule("TW123", Severity.WARNING)
def extreme_values(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Extreme rows that dominate the loss of the batch that holds them."""
    train = dataset.train
    role = role_of_split(train.name)
    for one in train.extremes:
        proof = _harm(one)
        if proof is None:
            continue
        what = f'"{one.column}"' if not one.column.isdigit() else f"position {one.column} of the items"
        where = what if one.feature is None else f"{what}, feature {one.feature}"
        first, rows = one.rows[0], "1 row" if one.count == 1 else f"{one.count} rows"
        yield Finding(
            message=f"{rows} of {one.counted} in {where} {'has' if one.count == 1 else 'have'} a value like {one.value:.6g} "
            f"(row {first}), {one.times:.3g} times further from the median than any other; the others lie between "
            f"{one.low:.4g} and {one.high:.4g}",
            measured={
                "column": one.column,
                "rows": one.count,
                "first_row": first,
                "value": one.value,
                "times": one.times,
            },
            where=setup.place(role.made, role, Role.TRAINER),
            proof=proof,
            repair=leave_rows_out(role, train.rows, one.rows) if train.rows and len(one.rows) == one.count else None,
            fix=unsafe(f"check row {first}: correct or drop such rows, or clip the column"),
        )


def _harm(one: Extremes) -> Proof | None:
    """What a step on such rows shows; None if it is like any other."""
    if one.failure:
        return Proof(f"a training step on such rows, and not on others: {one.failure}")
    if one.loss is None or one.usual_loss is None:
        return None
    if math.isfinite(one.loss) and one.loss < LARGER_LOSS * max(one.usual_loss, 0.0):
        return None
    return Proof(
        f"a step with such rows in the batch has a loss of {one.loss:.4g}; on other rows it is {one.usual_loss:.4g}"
    )


@rule("TW128", Severity.ERROR)
def failing_rows(rows: OddRowFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows with which a step raises, or has a loss that is not finite or outweighs all others."""
    for bad in rows.bad:
        if bad.odd.row in _known(dataset, bad.split):
            continue
        role, cell = role_of_split(bad.split), bad.cell
        step = "an evaluation step" if bad.evaluated else "a training step"
        yield Finding(
            message=f"row {bad.odd.row:,}{_of(rows.readings.get(bad.split))} of the {bad.split} set: {step} with it "
            f"{_what(bad)}; {_why(bad)}{_from(cell)}",
            measured={"row": bad.odd.row, "split": bad.split, **_at(cell)},
            where=setup.place(role.made, role, Role.TRAINER),
            proof=Proof(f"the same step succeeds on other rows, and fails with row {bad.odd.row:,} alone among them"),
            severity=Severity.ERROR if bad.failure or bad.loss != bad.loss else Severity.WARNING,
            fix=unsafe(f"correct or drop {_named(bad)}, or let the code handle such rows"),
        )


def _known(dataset: DatasetFacts, name: str) -> set[int]:
    """Rows that sharper rules speak of."""
    split = next((s for s in dataset.splits if s.name == name), None)
    if split is None:
        return set()
    far = {row for one in split.extremes if one.loss is not None or one.failure for row in one.rows}
    unusable = dataset.unusable_rows.get(name)
    return far | {r for c in split.columns if unusable for r in (*c.non_finite_rows, *c.missing_rows)}


def _of(reading: Reading | None) -> str:
    return f" of {reading.rows:,}" if reading is not None and reading.rows is not None else ""


def _what(bad: BadRow) -> str:
    if bad.failure:
        return f"raises {bad.failure}"
    return f"has a loss of {bad.loss:.4g}, and of at most {bad.usual_loss:.4g} with others"


def _why(bad: BadRow) -> str:
    if not bad.odd.column:
        return "it cannot be read"
    return f'its "{bad.odd.column}" has {bad.odd.why}'


def _from(cell: SourceCell | None) -> str:
    if cell is None:
        return ""
    column = f', column "{cell.column}"' if cell.column else ""
    value = f" ({cell.value})" if cell.value else ""
    file = f", {cell.file}{f' line {cell.line:,}' if cell.line is not None else ''}" if cell.file else ""
    return f". It is row {cell.row:,} of {cell.expression}{column}{value}{file}"


def _named(bad: BadRow) -> str:
    cell = bad.cell
    if cell is None or not cell.file:
        return f"row {bad.odd.row:,}"
    return f"row {bad.odd.row:,} ({cell.file}{f' line {cell.line:,}' if cell.line is not None else ''})"


def _at(cell: SourceCell | None) -> dict[str, int | str]:
    if cell is None:
        return {}
    line = {"line": cell.line} if cell.line is not None else {}
    return {"table": cell.expression, "table_row": cell.row, "column": cell.column, "file": cell.file, **line}


@rule("TW114", Severity.WARNING, raises=False)
def duplicate_examples(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows that repeat at a constant interval, while most of the data set's rows are never returned."""
    seen = dataset.repetition
    if seen is None or not seen.ignores_index:
        return
    yield Finding(
        message=f"{seen.read:,} training rows read by index contain only {seen.different:,} distinct rows, although "
        f"{seen.expression} holds {seen.held:,}; {seen.share:.0%} repeat the row {seen.every:,} positions earlier",
        measured={
            "read": seen.read,
            "different": seen.different,
            "held": seen.held,
            "rows_later": seen.every,
            "repeated_share": round(seen.share, 4),
        },
        where=seen.where or setup.place(Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"inputs and label are equal in {seen.share:.0%} of all pairs of rows that are {seen.every:,} apart; "
            f"{seen.held - seen.different:,} of the {seen.held:,} rows of {seen.expression} are never returned"
        ),
        fix=unsafe(f"make __getitem__ return the rows of its index: {setup.words.rows_of_index}"),
    )


# Eight rows that are drawn are not the same one by chance, unless most rows of the data set are.
FEWEST_ROWS = 8


@rule("TW127", Severity.ERROR, raises=False)
def equal_inputs(dataset: DatasetFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows whose inputs are all the same, although their labels are not."""
    seen, train = batch.equal_inputs, dataset.train
    if seen is None or seen.rows < FEWEST_ROWS or seen.labels < 2 or not train.hashed:
        return
    of_set = len(train.hashes) == 1
    if not of_set and max(Counter(train.row_hashes).values()) >= seen.rows:
        return  # the first batches may hold these rows alone
    what = "zeros" if seen.zero else "the same inputs"
    rows = train.hashed if of_set else seen.rows
    where = f"all {rows:,} training rows that were read" if of_set else f"the {rows:,} rows of the first batches"
    yield Finding(
        message=f"the inputs of {where} are {'zeros' if seen.zero else 'the same'}, and their labels differ"
        + ("" if of_set else f"; in the data set, {len(train.hashes):,} of {train.hashed:,} rows are different"),
        measured={"rows": rows, "different_inputs": 1, "different_labels": seen.labels},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.LOADER, Role.TRAINER, Role.TRAIN_CALL)
        if of_set
        else setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(
            f"the model receives {what} in all {seen.rows:,} rows of the first batches, with {seen.labels:,} different labels"
        ),
        fix=Fix(
            does="look at the line that makes the inputs: a join or lookup that matches nothing, an array that is never filled, "
            "or an index that stays the same"
            if of_set
            else "look at what the step does with the inputs of a batch before it calls the model"
        ),
    )
