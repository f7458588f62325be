"""The sheet in words, as tables for a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from trainwright.core.sheet import (
    ClassRow,
    Column,
    Curve,
    Layer,
    OutputRow,
    OwnNumber,
    Piece,
    Profile,
    RowsDrawn,
    Score,
    Sheet,
    TrainingRow,
)
from trainwright.report.curves import is_logarithmic
from trainwright.report.words import number

_NUMBER = re.compile(r"-?[\d.,]+(e[+-]?\d+)?%?")
TITLE = "What was seen in the rehearsal"
# Rows of a table on a page; the JSON has all of them.
MOST_ROWS = 80
# Longer tables are folded up, unless one of their rows is marked.
MOST_OPEN = 12
# Characters of a bar.
BAR = 8


class _Marked(Protocol):
    @property
    def mark(self) -> str: ...


M = TypeVar("M", bound=_Marked)


@dataclass(frozen=True)
class Line:
    """A row of a table, or a line in a terminal."""

    cells: tuple[str, ...]
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """One part of the sheet."""

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


def tables(sheet: Sheet) -> list[Table]:
    """All parts that have rows, for a page."""
    return [table for table in _all(sheet, MOST_ROWS) if table.lines]


def _all(sheet: Sheet, most: int) -> Iterable[Table]:
    yield _table(
        "Scores",
        ("set", "rows", "score", "first", "last", "a constant", "a simple learner"),
        sheet.scores,
        _score,
        most,
    )
    yield _table(
        "Profile",
        (
            "output",
            "rows",
            "score",
            "a constant",
            "simple learner, raw row",
            "on what is received",
            "the model",
            "not counted",
        ),
        sheet.profile,
        profile_cells,
        most,
    )
    yield _table(
        "The script's own numbers",
        ("number", "from", "first", "last", "best", "after update", "a constant", "at random"),
        sheet.own,
        _own,
        most,
    )
    yield _table(
        "Classes", ("class", "drawn in training", "evaluated", "right", "mostly taken for"), sheet.classes, _class, most
    )
    yield _table(
        "Outputs",
        ("output", "seen by", "drawn in training", "evaluated", "labels", "answers"),
        sheet.outputs,
        output_cells,
        most,
    )
    yield _table(
        "Inputs",
        ("input", "set", "rows", "least", "mean", "deviation", "greatest", "missing"),
        sheet.columns,
        _column,
        most,
    )
    yield _table(
        "Weights", ("tensor", "shape", "size before", "after", "gradient", "moved"), sheet.layers, _layer, most
    )
    yield _table(
        "Evaluated, saved, loaded", ("what", "times", "after update", "how", "line"), sheet.pieces, piece_cells, most
    )
    yield _table(
        "Rows drawn",
        ("data", "set", "rows", "drawn", "never", "times each", "at most", "line"),
        sheet.drawn,
        drawn_cells,
        most,
    )

    yield _table(
        "Trainings",
        ("training", "after update", "updates", "planned", "verdict", "because", "line"),
        sheet.trainings,
        training_cells,
        most,
    )


def _table(
    title: str, head: tuple[str, ...], rows: Sequence[M], words: Callable[[M], tuple[str, ...]], most: int
) -> Table:
    """So many rows, and the columns in which one of them has something."""
    chosen = chosen_of(rows, most)
    left = len(rows) - len(chosen)
    cells = [words(row) for row in chosen]
    filled = [i for i in range(len(head)) if any(of[i] for of in cells)]
    return Table(
        title=title,
        head=tuple(head[i] for i in filled),
        lines=tuple(Line(tuple(of[i] for i in filled), row.mark) for of, row in zip(cells, chosen, strict=True)),
        numeric=tuple(all(not of[i] or _NUMBER.fullmatch(of[i]) for of in cells) for i in filled),
        more=f"and {left:,} more" if left else "",
    )


def chosen_of(rows: Sequence[M], most: int) -> list[M]:
    """At most so many rows, in their order; the marked ones go before the others."""
    by_worth = sorted(range(len(rows)), key=lambda i: not rows[i].mark)[:most]
    return [rows[i] for i in sorted(by_worth)]


def score_name(row: Score) -> str:
    """Its name, with its unit if that is not the labels', and its output."""
    name = f"{row.name} in standard deviations" if row.name == "absolute error" else row.name
    return f"{name} ({row.output})" if row.output else name


def _score(row: Score) -> tuple[str, ...]:
    return (
        row.rows_of,
        f"{row.rows:,}{'' if row.unit == 'rows' else f' {row.unit}'}",
        score_name(row),
        value_of(row.first),
        value_of(row.last),
        value_of(row.constant),
        value_of(row.simple),
    )


def profile_cells(row: Profile) -> tuple[str, ...]:
    """A profile's row of its table: each score with its bar."""
    told = [f"{bar_of(value)} {value_of(value)}" for value in (row.constant, row.raw, row.received, row.model)]
    repeats = f"repeats the label: {', '.join(row.not_counted)}" if row.not_counted else ""
    return row.output, f"{row.rows:,}", row.name, *told, repeats


def bar_of(share: float) -> str:
    """A bar for a share of one."""
    filled = round(BAR * min(max(share, 0.0), 1.0))
    return "█" * filled + "░" * (BAR - filled)


def _own(row: OwnNumber) -> tuple[str, ...]:
    at = "" if row.best_update is None else f"{row.best_update:,}"
    guesses = value_of(row.constant), value_of(row.random)
    return row.name, row.source, value_of(row.first), value_of(row.last), value_of(row.best), at, *guesses


def _class(row: ClassRow) -> tuple[str, ...]:
    name = f"{row.label} ({row.output})" if row.output else row.label
    return name, "" if row.drawn is None else f"{row.drawn:,}", f"{row.evaluated:,}", share_of(row.right), row.taken_for


def output_cells(row: OutputRow) -> tuple[str, ...]:
    """An output's row of its table."""
    labels, answers = spread_of(row.label_mean, row.label_deviation), spread_of(row.answer_mean, row.answer_deviation)
    if row.classes is not None:
        labels = f"{row.classes:,} classes"
        answers = "" if row.classes_answered is None else f"{row.classes_answered:,} classes"
    return row.name, row.source, f"{row.drawn:,}", f"{row.evaluated:,}", labels, answers


def _column(row: Column) -> tuple[str, ...]:
    values = map(value_of, (row.least, row.mean, row.deviation, row.greatest))
    return row.name, row.rows_of, f"{row.rows:,}", *values, share_of(row.missing) if row.missing else ""


def _layer(row: Layer) -> tuple[str, ...]:
    shape = "×".join(map(str, row.shape))
    moved = "yes" if row.moved else "no"
    return (
        row.name,
        shape,
        value_of(row.before),
        value_of(row.after),
        "yes" if row.gradient else "no",
        moved if row.trains else f"{moved}, frozen",
    )


def piece_cells(row: Piece) -> tuple[str, ...]:
    """A piece's row of its table."""
    at = "" if row.last_update is None else f"{row.last_update:,}"
    at = at if row.first_update == row.last_update else f"{row.first_update:,} to {at}"
    return row.what, f"{row.times:,}", at, row.how, str(row.where or "")


def training_cells(row: TrainingRow) -> tuple[str, ...]:
    """A training's row of its table."""
    return (
        f"{row.number} ({row.kind})",
        f"{row.begins:,}",
        f"{row.updates:,}",
        "" if row.planned is None else f"{row.planned:,}",
        row.shown,
        row.why,
        str(row.where or ""),
    )


def drawn_cells(row: RowsDrawn) -> tuple[str, ...]:
    """A set's row of its table."""
    each = f"{row.draws / row.distinct:.3g}" if row.distinct else ""
    return (
        row.name,
        row.rows_of,
        f"{row.size:,}",
        f"{row.distinct:,}",
        f"{row.never:,}",
        each,
        f"{row.most:,}",
        str(row.where or ""),
    )


def curve(row: Curve) -> str:
    """A curve's first and last value, and its scale."""
    return f"{value_of(row.values[0])} → {value_of(row.values[-1])}{', log scale' if is_logarithmic(row) else ''}"


def value_of(value: float | None) -> str:
    """A number in three digits; empty for none."""
    return "" if value is None else number(float(f"{value:.3g}"))


def share_of(value: float | None) -> str:
    """A share as a percentage; empty for none."""
    return "" if value is None else f"{value:.0%}"


def spread_of(mean: float | None, deviation: float | None) -> str:
    """Mean and deviation; empty for none."""
    return "" if mean is None else f"{value_of(mean)} ± {value_of(deviation)}"
