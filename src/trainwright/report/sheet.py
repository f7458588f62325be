"""The sheet in words: its tables for a page, and for a terminal what says something, in about one screen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trainwright.core.sheet import (
    CLASSES,
    DRAWN,
    HELD_OUT,
    INPUTS,
    OUTPUTS,
    OWN,
    PIECES,
    PROFILE,
    SCORES,
    TABLES,
    TRAININGS,
    WEIGHTS,
    Column,
    Curve,
    Row,
    Sheet,
    Table,
)
from trainwright.report.charts import subject_of
from trainwright.report.curves import blocks, is_logarithmic
from trainwright.report.samples import brief_generated, brief_rows
from trainwright.report.words import Line, value_of

TITLE = "What was seen in the rehearsal"
# Rows of a table on a page; the JSON has all of them.
MOST_ROWS = 80
# Longer tables are folded up, unless one of their rows is marked.
MOST_OPEN = 12
# Characters of a bar.
BAR = 8
# Lines of each part: together about one screen.
MOST_LINES = {
    "scores": 4, "own": 3, "curves": 3, "classes": 8, "outputs": 3, "columns": 3, "layers": 3, "pieces": 4, "drawn": 3,
    "trainings": 3,
}  # fmt: skip
# A learning rate that changes by less is shown as constant: means of equal numbers are not quite equal.
CHANGED = 1.001
# Two scores that differ by less are the same.
SAME = 1e-3
# A row that is drawn so many times more often than the others is mentioned.
MOST_UNEVEN = 5
_FIELD = re.compile(r"{(\w+)}")
M = TypeVar("M", Row, Curve)


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
    if sheet.mended:
        parts.append(sheet.mended)
    return ", ".join(parts)


def end(sheet: Sheet) -> str:
    """How it ended, if not by itself."""
    return f"It ended by {sheet.end}" if sheet.end else ""


def tables(sheet: Sheet, most: int = MOST_ROWS) -> list[Page]:
    """All tables that have rows, for a page."""
    return [_page(table, rows, most) for table in TABLES if (rows := getattr(sheet, table.name))]


def _page(table: Table, rows: Sequence[Row], most: int) -> Page:
    """So many rows, and the columns in which one of them has something."""
    chosen = chosen_of(rows, most)
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
    """A count as a share of the column's greatest; a share as it is."""
    if column.kind == "share":
        return getattr(row, column.key)  # type: ignore[no-any-return]
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


def brief(sheet: Sheet) -> dict[str, tuple[Line, ...]]:
    """What says something, in about one screen."""
    parts = {
        "score": _brief_scores(sheet),
        "profile": _brief_profile(sheet),
        "reported": _brief_own(sheet),
        "curves": _brief_curves(sheet),
        "classes": _brief_classes(sheet),
        "outputs": _brief_outputs(sheet),
        "inputs": _brief_columns(sheet),
        "weights": _brief_layers(sheet),
        "pieces": _lines(PIECES, sheet.pieces, _told_piece),
        "rows": _lines(DRAWN, sheet.drawn, _told_drawn),
        "trainings": _brief_trainings(sheet),
        "samples": brief_rows(sheet),
        "generated": brief_generated(sheet),
    }
    return {title: lines for title, lines in parts.items() if lines}


def _lines(
    table: Table, rows: Sequence[Row], told: Callable[[Row], Mapping[str, str]] | None = None
) -> tuple[Line, ...]:
    """Some rows, and how many more there are; what a row has in common with the one above it is said once.

    Args:
        told: what a row's line has instead of its cells, or beside them.
    """
    chosen = chosen_of(rows, MOST_LINES[table.name])
    lines, above = list[Line](), ("", "")
    for row in chosen:
        cells = {**cells_of(table, row), **(told(row) if told is not None else {})}
        first, *others = (tell(template, cells) for template in table.line.split("; "))
        mark = row.mark if (first, row.mark) != above else ""
        lines.append(Line(("" if others and first == above[0] else first, *others), mark))
        above = first, row.mark
    left = len(rows) - len(chosen)
    return (*lines, Line((f"and {left:,} more",))) if left else tuple(lines)


def _brief_scores(sheet: Sheet) -> tuple[Line, ...]:
    """Held-out rows by all scores, training rows by the first."""
    shown = [
        row
        for row in sheet.scores
        if row.mark or (row.rows_of == HELD_OUT and row.name != "correlation") or row.name in ("accuracy", "R2")
    ]
    return _lines(SCORES, shown)


def _brief_profile(sheet: Sheet) -> tuple[Line, ...]:
    """The bars of the first output that is marked, or of the first."""
    lines = list[Line]()
    for row in chosen_of(sheet.profile, 1):
        cells = cells_of(PROFILE, row)
        for column in PROFILE.columns:
            if column.kind == "bar":
                mark = row.mark if column.key == "raw" else ""
                told = f"{row.name} {cells[column.key]}"
                lines.append(Line((column.head, bar_of(getattr(row, column.key)), told), mark))
        if row.not_counted:
            lines.append(Line((f"not counted: {cells['not_counted']} repeats the label",)))
    return tuple(lines)


def bar_of(share: float) -> str:
    """A bar for a share of one."""
    filled = round(BAR * min(max(share, 0.0), 1.0))
    return "█" * filled + "░" * (BAR - filled)


def _guessing(row: Row, sheet: Sheet) -> str:
    """What guessing gives by the script's own function, whose constant answer is the best one for the rows that it got."""
    told = [f"{how} {value_of(value)}" for how in ("constant", "random") if (value := getattr(row, how)) is not None]
    same = [one for one in sheet.scores if one.rows_of == HELD_OUT and subject_of(one.name) == subject_of(row.name)]
    of_training = [one.constant for one in same if one.constant is not None]
    differs = row.constant is not None and bool(of_training) and all(abs(row.constant - c) > SAME for c in of_training)
    why = ["the first is the best constant for these rows, above it is that of the training rows"] if differs else []
    return f"guessing: {'; '.join([', '.join(told), *why])}" if told else ""


def _brief_own(sheet: Sheet) -> tuple[Line, ...]:
    def told(row: Row) -> dict[str, str]:
        return {"guessing": _guessing(row, sheet), **({} if row.count > 1 else {"first": "", "best": ""})}

    return _lines(OWN, sheet.own, told)


def _brief_curves(sheet: Sheet) -> tuple[Line, ...]:
    """The loss, the first of the script's own numbers, the gradient norm if it is marked, and the rate if it changes."""
    ours = ("learning rate", "gradient norm")
    first = next((row for row in sheet.curves if row.name != "loss" and not row.name.startswith(ours)), None)

    def is_shown(row: Curve) -> bool:
        changes = row.name.startswith("learning rate") and max(row.values) > CHANGED * min(row.values)
        return bool(row.mark) or row is first or row.name == "loss" or changes

    return tuple(
        Line((row.name, blocks(row, sheet.updates), curve(row)), row.mark)
        for row in chosen_of([*filter(is_shown, sheet.curves)], MOST_LINES["curves"])
        if len(row.values) > 1
    )


def _brief_classes(sheet: Sheet) -> tuple[Line, ...]:
    """The worst of them if one is marked, otherwise how far apart they are."""
    known = [row for row in sheet.classes if row.right is not None]
    if not any(row.mark for row in sheet.classes):
        if len(known) < 2:
            return ()
        worst, best = known[0], known[-1]
        which = ", training rows" if worst.evaluated is None else ""
        told = f"{len(known)} classes{which}, right from {worst.right:.0%} ({worst.label}) to {best.right:.0%} ({best.label})"
        return (Line((told,)),)
    return _lines(CLASSES, sheet.classes)


def _brief_outputs(sheet: Sheet) -> tuple[Line, ...]:
    """Outputs without a table of classes."""
    shown = [row for row in sheet.outputs if row.mark or row.label_mean is not None or not sheet.classes]
    return _lines(OUTPUTS, shown)


def _brief_columns(sheet: Sheet) -> tuple[Line, ...]:
    """Those that are marked; the input as a whole is shown if it is one row."""
    names = {row.name for row in sheet.columns}
    shown = [row for row in sheet.columns if row.mark or len(names) == 1]
    if names and not shown:
        return (Line((f"{len(names)} columns, nothing stands out",)),)
    return _lines(INPUTS, shown, lambda row: {"greatest": ""} if row.least == row.greatest else {})


def _brief_layers(sheet: Sheet) -> tuple[Line, ...]:
    if not sheet.layers:
        return ()
    marked = [row for row in sheet.layers if row.mark]
    return (Line((_counted(sheet.layers),)), *_lines(WEIGHTS, marked))


def _counted(layers: Sequence[Row]) -> str:
    """How many tensors there are, are trained, and moved."""
    trained = [row for row in layers if row.trains]
    moved = sum(row.moved for row in trained)
    of = "" if len(trained) == len(layers) else f", {len(trained):,} of them trained"
    told = "all moved" if moved == len(trained) and trained else f"{moved:,} moved"
    return f"{len(layers):,} tensor{'s' if len(layers) > 1 else ''}{of}, {told}"


def _told_piece(row: Row) -> dict[str, str]:
    span = f"{row.last_update:,}" if row.last_update is not None else ""
    span = span if row.first_update == row.last_update else f"{row.first_update:,} to {span}"
    at = f"{',' if row.times > 1 else ''} after update{'s' if 'to' in span else ''} {span}" if span else ""
    return {"times": f"{row.times:,} times" if row.times > 1 else "", "at": at}


def _told_drawn(row: Row) -> dict[str, str]:
    return {
        "distinct": f"{row.distinct:,} of" if row.never else "all",
        **({} if row.draws > row.distinct else {"each": ""}),
        **({} if row.distinct and row.most > MOST_UNEVEN * row.each else {"most": ""}),
    }


def _brief_trainings(sheet: Sheet) -> tuple[Line, ...]:
    """How many have each verdict; each by itself where they differ."""
    verdicts = Counter(row.shown for row in sheet.trainings)
    if len(verdicts) < 2:
        return tuple(Line((f"all {count:,}: {shown}",)) for shown, count in verdicts.items())
    counted = Line((", ".join(f"{count:,} {shown}" for shown, count in verdicts.most_common()),))
    return (counted, *_lines(TRAININGS, sheet.trainings))
