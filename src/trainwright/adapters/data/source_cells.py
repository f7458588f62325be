"""Where a row of a set came from: a table of the script with the same row, and the line of the file it was read from."""

from __future__ import annotations

import ast
import csv
import functools
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import as_mapping, objects_in_scope
from trainwright.probes.splits.odd_rows import OddRows, stack_values
from trainwright.probes.splits.values import evenly
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.source.places import show
from trainwright.seams.source.written import syntax_tree
from trainwright.stages import OddRow, OddRowFacts, SourceCell
from trainwright.tensors.items import length, reader_of

# Rows of a set that must have a value of the table's row with the same number.
COMPARED_ROWS = 24
# A longer table is not searched for the column in which a row is extreme, and a larger file not for its line.
MOST_ROWS, MOST_BYTES = 200_000, 512 * 2**20
# Wider items are images and signals.
MOST_VALUES = 512
LONGEST_SHOWN = 40
# Features of an item that all vary this little prove nothing by being equal.
FEWEST_DISTINCT = 3
_FILES = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".jsonl": "", ".ndjson": ""}

ItemOf = Callable[[str, int], Mapping[str, Any] | None]
"""A row of a set, by the set's name; None if it cannot be read."""


@dataclass(frozen=True)
class _Table:
    """An object of the script with named columns."""

    expression: str
    value: Any
    names: tuple[str, ...]

    def row(self, number: int) -> dict[str, Any]:
        """A row by its position."""
        return _row(self.value, number)

    def column(self, name: str) -> Sequence[Any]:
        """A whole column."""
        value = self.value
        if isinstance(value, list):
            return [one.get(name) for one in value]
        column = value[name]
        array = column.to_numpy() if hasattr(column, "to_numpy") else column[:]
        return array.tolist() if str(getattr(array, "dtype", "")) == "object" else array  # type: ignore[no-any-return]


def with_cells(facts: OddRowFacts, scope: Mapping[str, Any], item_of: ItemOf) -> OddRowFacts:
    """The facts, in which rows have the place they came from, where that is known."""
    if not facts.bad:
        return facts
    found = []
    for bad in facts.bad:
        cell = None
        with tolerated():  # a user's object that only looks like a table, a file that cannot be decoded
            reading = facts.readings.get(bad.split)
            read = functools.partial(item_of, bad.split)
            cell = _cell(bad.odd, reading.rows if reading else None, scope, read)
        found.append(replace(bad, cell=cell))
    return replace(facts, bad=tuple(found))


def find_origin(dataset: Any, number: int, scope: Mapping[str, Any]) -> SourceCell | None:
    """Where a row of a data set came from."""
    with tolerated():  # as above
        reads = reader_of(dataset)
        odd = OddRow(row=number, column="", why="")
        return _cell(odd, length(dataset), scope, lambda row: as_mapping(reads(row)))
    return None


def _cell(
    odd: OddRow, rows: int | None, scope: Mapping[str, Any], item_of: Callable[[int], Mapping[str, Any] | None]
) -> SourceCell | None:
    if rows is None:
        return None
    number = odd.row
    others = [row for row in evenly(range(rows), COMPARED_ROWS) if row != number]
    seen = [(i, item) for i in others if (item := item_of(i)) is not None]
    for table in _tables(scope, rows):
        if not _is_aligned(table, seen):
            continue
        row = table.row(number)
        column = _odd_column(table, odd, row)
        value = _shown(row[column]) if column else ""
        cell = SourceCell(expression=table.expression, row=number, column=column, value=value)
        at = _line_of(row, scope)
        return replace(cell, file=at[0], line=at[1]) if at is not None else cell
    return None


def _tables(scope: Mapping[str, Any], rows: int) -> Iterator[_Table]:
    for named in objects_in_scope(scope):
        value = named.value
        if isinstance(value, (str, bytes)) or (length(value) or 0) < rows:  # the set may be its first rows
            continue
        names: Any = ()
        if isinstance(value, list) and isinstance(value[0], dict):
            names = value[0]
        elif hasattr(value, "column_names") or (hasattr(value, "columns") and hasattr(value, "iloc")):
            names = getattr(value, "column_names", None) or value.columns
        if len(names):
            yield _Table(named.expression, value, tuple(str(n) for n in names))


def _row(value: Any, number: int) -> dict[str, Any]:
    row = value.iloc[number] if hasattr(value, "iloc") else value[number]
    return {str(k): row[k] for k in row.keys()}  # noqa: SIM118 (a pandas row is no mapping)


def _is_aligned(table: _Table, seen: Sequence[tuple[int, Mapping[str, Any]]]) -> bool:
    """Whether a column of the table has, in each row, a value that the set's row has in the same place."""
    if not seen:
        return False
    flat = [list(_scalars(item)) for _, item in seen]
    rows = [table.row(number) for number, _ in seen]
    for name in table.names:
        wanted = [_plain(row.get(name)) for row in rows]
        if len(set(map(str, wanted))) < FEWEST_DISTINCT:
            continue
        for position in range(min(map(len, flat))):
            if all(_same(values[position], want) for values, want in zip(flat, wanted)):
                return True
    return False


def _scalars(item: Mapping[str, Any]) -> Iterator[Any]:
    for value in item.values():
        if isinstance(value, str):
            yield value
            continue
        with tolerated():
            array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
            if array.dtype.kind in "iufb" and array.size <= MOST_VALUES:
                yield from array.reshape(-1).tolist()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return value


def _same(left: Any, right: Any) -> bool:
    """Whether two values are the same but for single precision and the form of a number."""
    if isinstance(left, str) or isinstance(right, str):
        return str(left).strip() == str(right).strip() or _same_numbers(left, right)
    return _same_numbers(left, right)


def _same_numbers(left: Any, right: Any) -> bool:
    if left in (None, "") or right in (None, ""):
        return _is_missing(left) and _is_missing(right)
    try:
        a, b = float(left), float(right)
    except (TypeError, ValueError):
        return False
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12)


def _is_missing(value: Any) -> bool:
    return value in (None, "") or (isinstance(value, float) and math.isnan(value))


def _odd_column(table: _Table, odd: OddRow, row: Mapping[str, Any]) -> str:
    """The table's column in which the row is extreme; "" if none or several are."""
    missing = [n for n in table.names if _is_missing(_plain(row.get(n)))]
    if len(missing) == 1:
        return missing[0]
    if odd.column in table.names:
        return odd.column
    if (length(table.value) or 0) > MOST_ROWS:
        return ""
    found = OddRows()
    for name in table.names:
        values = table.column(name)
        found.add_column(name, values if isinstance(values, np.ndarray) else stack_values(values), range(len(values)))
    columns = {one.column for one in found.every() if one.row == odd.row}
    return columns.pop() if len(columns) == 1 else ""


def _shown(value: Any) -> str:
    said = repr(_plain(value))
    return said if len(said) <= LONGEST_SHOWN else f"{said[:LONGEST_SHOWN]}…"


def _line_of(row: Mapping[str, Any], scope: Mapping[str, Any]) -> tuple[str, int] | None:
    """The only line with this row, in a file that the script names."""
    for path in _files(scope):
        lines = list(itertools.islice(_lines_with(path, row), 2))
        if len(lines) == 1:
            return show(str(path)), lines[0]
    return None


def _files(scope: Mapping[str, Any]) -> list[Path]:
    """The files of rows that the script names: in its text, its variables, or on its command line."""
    script = str(scope.get("__file__", ""))
    tree = syntax_tree(script) if script else None
    texts = (
        [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)] if tree else []
    )
    named = [v for v in scope.values() if isinstance(v, (str, Path))]
    folders = [Path(), Path(script).parent, *(v for v in named if isinstance(v, Path) and v.is_dir())]
    words = [w for w in (*texts, *map(str, named), *sys.argv[1:]) if Path(w).suffix in _FILES and len(w) < 1_000]
    paths = dict.fromkeys(folder / word for word in words for folder in folders)
    return [p for p in paths if p.is_file() and p.stat().st_size <= MOST_BYTES]


def _lines_with(path: Path, row: Mapping[str, Any]) -> Iterator[int]:
    """The lines of a file whose named values are all those of a row."""
    for line, values in _rows_of(path):
        shared = [name for name in values if name in row]
        if len(shared) == len(values) and all(_same(_plain(row[n]), values[n]) for n in shared):
            yield line


def _rows_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each row of a file by the names of its columns, with its line."""
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix in (".jsonl", ".ndjson"):
            for number, text in enumerate(file, start=1):
                if text.strip():
                    yield number, json.loads(text)
            return
        reader = csv.reader(file, delimiter=_FILES[path.suffix])
        names = next(reader, [])
        begins = reader.line_num + 1
        for values in reader:
            yield begins, dict(zip(names, values))
            begins = reader.line_num + 1
