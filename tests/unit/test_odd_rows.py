"""Extreme rows are found in columns and in items alike, and steps on them single out those that fail."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trainwright.adapters.data.odd_rows import RowStep, TriedSet, held_columns, read_further, try_worst_rows
from trainwright.adapters.data.source_cells import with_cells
from trainwright.probes.splits.odd_rows import OddRows
from trainwright.stages import BadRow, OddRow, OddRowFacts, Reading


def test_the_ends_of_a_column_are_those_of_its_rows_one_by_one() -> None:
    values = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)
    values[77] = 3.0
    values[200, 2] = np.nan
    whole, single = OddRows(), OddRows()
    whole.add_column("x", values, range(500))
    single.add_items([{"x": list(v)} for v in values.tolist()], range(500))
    known = {int(np.nanmax(values, axis=1).argmax()), int(np.nanmin(values, axis=1).argmin()), 77, 200}
    assert {one.row for one in whole.found()} == known
    assert known <= {one.row for one in single.found()}
    assert whole.found()[0] == OddRow(row=200, column="x", why="a value that is NaN or infinite")


def test_a_class_that_occurs_once_is_rare_of_several_parts() -> None:
    labels = np.random.default_rng(0).integers(0, 5, 4_000)
    labels[3_990] = 5
    whole = OddRows()
    for start in range(0, 4_000, 1_000):
        whole.add_column("y", labels[start : start + 1_000], range(start, start + 1_000))
    assert whole.found()[0] == OddRow(row=3_990, column="y", why="the value 5, as no other row")


def test_empty_and_longest_texts_and_missing_values() -> None:
    found = OddRows()
    found.add_column("text", ["a b", "", "a b c d", None, "a"], range(5))
    assert [(one.row, one.why) for one in found.found()] == [
        (3, "no value"),
        (2, "the greatest length, 4"),
        (1, "the smallest length, 0"),
    ]


class _Rows:
    """A million rows in an array, one of which cannot be converted."""

    def __init__(self) -> None:
        self.values = np.arange(1_000_000) % 7
        self.values[999_123] = 7
        self.held = 3

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> dict[str, Any]:
        if row == 2_500:
            raise ValueError("could not convert string to float: 'n/a'")
        return {"x": row, "y": int(self.values[row])}


def test_arrays_that_a_set_holds_are_searched_whole_and_its_items_as_time_allows() -> None:
    data = _Rows()
    assert [name for name, _ in held_columns(data, len(data))] == ["values"]
    found = read_further(data, len(data), 2_000, 0.0)
    assert 999_123 in {one.row for one in found.found()}
    assert found.read == 0
    found = read_further(data, 4_000, 2_000, 60.0)
    assert found.read == 2_000
    assert found.found()[0].row == 2_500
    assert "n/a" in found.found()[0].why


def _tried(step: Any, odd: Sequence[int], batch_size: int = 16) -> TriedSet:
    rows = [OddRow(row=row, column="x", why="the largest value, 9") for row in odd]
    return TriedSet(name="train", odd=rows, others=range(100), batch_size=batch_size, step=step)


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_a_batch_that_fails_is_taken_apart(batch_size: int) -> None:
    def step(rows: Sequence[int]) -> RowStep:
        assert len(rows) <= batch_size
        return RowStep(failure="IndexError: 9" if 41 in rows else "", loss=float("nan") if 97 in rows else 1.0)

    bad = try_worst_rows(_tried(step, [3, 41, 50, 97, 98], batch_size), 60)
    assert [(one.odd.row, one.failure) for one in bad] == [(41, "IndexError: 9"), (97, "")]


def test_nothing_is_said_of_rows_that_fail_only_together_nor_where_every_step_fails() -> None:
    together = lambda rows: RowStep(failure="no pair" if {41, 50} <= set(rows) else "", loss=1.0)  # noqa: E731
    assert try_worst_rows(_tried(together, [41, 50]), 60) == []
    assert try_worst_rows(_tried(lambda rows: RowStep(failure="always"), [41]), 60) == []


def test_a_loss_is_a_jump_only_beyond_the_largest_of_several_batches() -> None:
    def step(rows: Sequence[int]) -> RowStep:
        return RowStep(loss=1_000.0 if 41 in rows else 50.0 if 20 in rows else 1.0)

    assert try_worst_rows(_tried(step, [41]), 60) == []
    assert [one.odd.row for one in try_worst_rows(_tried(lambda r: RowStep(loss=1.0 + 500 * (41 in r)), [41]), 60)]


@pytest.mark.parametrize("quoted", [False, True])
def test_a_row_is_named_by_its_table_and_the_line_of_its_file(tmp_path: Path, quoted: bool) -> None:
    """A text with a line break moves the lines of all rows after it."""
    table = pd.DataFrame({"text": [f"word {n}" for n in range(300)], "price": np.arange(300) / 7 + 1})
    table.loc[5, "text"] = "two\nlines"
    table.loc[211, "price"] = 0.0
    table.to_csv(tmp_path / "prices.csv", index=False, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    frame = pd.read_csv(tmp_path / "prices.csv")
    prices = frame["price"].to_numpy(dtype=np.float32)

    def item_of(name: str, row: int) -> Mapping[str, Any]:
        return {"0": np.zeros(3), "1": prices[row]}

    bad = BadRow(split="train", odd=OddRow(row=211, column="1", why="the smallest value, 0"))
    facts = OddRowFacts(readings={"train": Reading(read=300, rows=300)}, bad=(bad,))
    scope = {"frame": frame, "path": tmp_path / "prices.csv", "other": pd.DataFrame({"n": range(300)})}
    cell = with_cells(facts, scope, item_of).bad[0].cell
    assert cell is not None
    assert (cell.expression, cell.row, cell.column, cell.value) == ("frame", 211, "price", "0.0")
    assert (cell.file.endswith("prices.csv"), cell.line) == (True, 214)


def test_a_table_whose_rows_are_in_another_order_is_no_source() -> None:
    frame = pd.DataFrame({"price": np.arange(300.0)})
    bad = BadRow(split="train", odd=OddRow(row=211, column="1", why="the smallest value, 0"))
    facts = OddRowFacts(readings={"train": Reading(read=300, rows=300)}, bad=(bad,))
    shuffled = frame["price"].sample(frac=1, random_state=0).to_numpy()
    found = with_cells(facts, {"frame": frame}, lambda name, row: {"1": shuffled[row]})
    assert found.bad[0].cell is None
