"""The sheet in words, as tables for a page, and cell by cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from trainwright.core.sheet import TABLES, Column, Curve, Row, Sheet, Table
from trainwright.report.curves import is_logarithmic
from trainwright.report.words import number

TITLE = "What was seen in the rehearsal"
# Rows of a table on a page; the JSON has all of them.
MOST_ROWS = 80
# Longer tables are folded up, unless one of their rows is marked.
MOST_OPEN = 12
_FIELD = re.compile(r"{(\w+)}")


class _Marked(Protocol):
    @property
    def mark(self) -> str: ...


M = TypeVar("M", bound=_Marked)


@dataclass(frozen=True)
class Line:
    """A row of a table, or a line in a terminal."""

    cells: tuple[str, ...]
    mark: str = ""
    bars: tuple[float | None, ...] = ()
    """The length of each cell's bar, 0 to 1; None: it has none."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A table as a page shows it."""

    title: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    numeric: tuple[bool, ...]
    """Which columns hold numbers: these are aligned on the right."""
    more: str = ""
    """What is not shown, counted; empty: nothing."""


def outline(sheet: Sheet) -> str:
    """How much was seen of what was planned."""
    if not sheet.updates:
        parts = ["no update was seen"]
    elif sheet.planned is not None:
        parts = [f"{sheet.updates:,} of {sheet.planned:,} updates"]
    else:
        parts = [f"{sheet.updates:,} update{'s' if sheet.updates > 1 else ''}"]
    if sheet.cut_at is not None:
        share = f" at {sheet.share:.0%} of the plan" if sheet.share is not None else ""
        after = f" after update {sheet.cut_at:,}" if sheet.cut_at != sheet.updates else ""
        parts.append(f"cut short{share}{after}")
    if sheet.seconds:
        parts.append(f"{sheet.seconds:.1f} s")
    if sheet.isolation:
        parts.append(f"isolated by {'the kernel' if sheet.isolation == 'kernel' else 'Python'}")
    return ", ".join(parts)


def end(sheet: Sheet) -> str:
    """How it ended, if not by itself."""
    return f"It ended by {sheet.end}" if sheet.end else ""


def tables(sheet: Sheet) -> list[Page]:
    """All tables that have rows, for a page."""
    return [_page(table, rows) for table in TABLES if (rows := getattr(sheet, table.name))]


def _page(table: Table, rows: Sequence[Row]) -> Page:
    """So many rows, and the columns in which one of them has something."""
    chosen = chosen_of(rows, MOST_ROWS)
    told = [cells_of(table, row) for row in chosen]
    columns = [one for one in table.columns if one.head != "-" and any(cells[one.key] for cells in told)]
    lines = []
    for row, cells in zip(chosen, told, strict=True):
        bars = tuple(_bar(row, one, rows) for one in columns)
        lines.append(Line(tuple(cells[one.key] for one in columns), row.mark, bars))
    return Page(
        title=table.title,
        head=tuple(one.head for one in columns),
        lines=tuple(lines),
        numeric=tuple(one.kind in ("number", "share", "rare", "bar") for one in columns),
        more=f"and {len(rows) - len(chosen):,} more" if len(rows) > len(chosen) else "",
    )


def _bar(row: Row, column: Column, rows: Sequence[Row]) -> float | None:
    """A count as a share of the column's greatest, and a number as it is."""
    if column.kind != "bar":
        return None
    return max(getattr(row, column.key) or 0, 0) / max(1, *(getattr(one, column.key) or 0 for one in rows))


def chosen_of(rows: Sequence[M], most: int) -> list[M]:
    """At most so many rows, in their order; the marked ones go before the others."""
    by_worth = sorted(range(len(rows)), key=lambda i: not rows[i].mark)[:most]
    return [rows[i] for i in sorted(by_worth)]


def cells_of(table: Table, row: Row) -> dict[str, str]:
    """A row's cells as text, by their columns' keys; empty: it has none."""
    return {one.key: _text(getattr(row, one.key), one.kind) for one in table.columns}


def _text(value: Any, kind: str) -> str:
    if value is None or (kind == "rare" and not value):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "×".join(map(str, value)) if all(isinstance(one, int) for one in value) else ", ".join(value)
    if kind in ("share", "rare"):
        return f"{value:.0%}"
    if isinstance(value, float):
        return value_of(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def tell(template: str, cells: Mapping[str, str]) -> str:
    """A template with these cells; a piece between two `|` that lacks one of its own is left out."""
    pieces = (piece for piece in template.split("|") if all(cells[name] for name in _FIELD.findall(piece)))
    return "".join(pieces).format_map(cells)


def curve(row: Curve) -> str:
    """A curve's first and last value, and its scale."""
    return f"{value_of(row.values[0])} → {value_of(row.values[-1])}{', log scale' if is_logarithmic(row) else ''}"


def value_of(value: float | None) -> str:
    """A number in three digits; empty for none."""
    return "" if value is None else number(float(f"{value:.3g}"))
