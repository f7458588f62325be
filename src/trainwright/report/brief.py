"""The sheet for a terminal: what says something, in about one screen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trainwright.core.sheet import HELD_OUT, Layer, OwnNumber, Score, Sheet
from trainwright.report.curves import blocks
from trainwright.report.samples import brief_generated, brief_rows
from trainwright.report.sheet import (
    Line,
    bar_of,
    chosen_of,
    curve,
    drawn_cells,
    output_cells,
    piece_cells,
    score_name,
    share_of,
    spread_of,
    value_of,
)

# Lines of each part: together about one screen.
MOST_LINES = {
    "scores": 4, "own": 3, "curves": 3, "classes": 8, "outputs": 3, "columns": 3, "layers": 4, "pieces": 4, "drawn": 3,
    "trainings": 3,
}  # fmt: skip
# A learning rate that changes by less is shown as constant: means of equal numbers are not quite equal.
CHANGED = 1.001
# Two scores that differ by less are the same.
SAME = 1e-3
# A row that is drawn so many times more often than the others is mentioned.
MOST_UNEVEN = 5
# How the names of numbers of held-out rows begin.
_OF_ROWS = re.compile(r"^(?:val|eval|test)_")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the sheet for a terminal."""

    title: str
    lines: tuple[Line, ...]


def brief(sheet: Sheet) -> list[Part]:
    """What says something, in about one screen."""
    parts = [
        Part(title="score", lines=_brief_scores(sheet)),
        Part(title="profile", lines=_brief_profile(sheet)),
        Part(title="reported", lines=_brief_own(sheet)),
        Part(title="curves", lines=_brief_curves(sheet)),
        Part(title="classes", lines=_brief_classes(sheet)),
        Part(title="outputs", lines=_brief_outputs(sheet)),
        Part(title="inputs", lines=_brief_columns(sheet)),
        Part(title="weights", lines=_brief_layers(sheet)),
        Part(title="pieces", lines=_brief_pieces(sheet)),
        Part(title="rows", lines=_brief_drawn(sheet)),
        Part(title="trainings", lines=_brief_trainings(sheet)),
        Part(title="samples", lines=brief_rows(sheet)),
        Part(title="generated", lines=brief_generated(sheet)),
    ]
    return [part for part in parts if part.lines]


def _brief_scores(sheet: Sheet) -> tuple[Line, ...]:
    """Held-out rows by all scores, training rows by the first."""
    shown = [
        row
        for row in sheet.scores
        if row.mark or (row.rows_of == HELD_OUT and row.name != "correlation") or row.name in ("accuracy", "R2")
    ]
    lines, last = list[Line](), ("", "")
    for row in chosen_of(shown, MOST_LINES["scores"]):
        rows = f"{row.rows_of}, {row.rows:,} {row.unit}"
        cells = ("" if rows == last[0] else rows, score_name(row), _way(row.first, row.last), _beside(row))
        lines.append(Line(cells, row.mark if (rows, row.mark) != last else ""))
        last = rows, row.mark
    return tuple(lines)


def _brief_profile(sheet: Sheet) -> tuple[Line, ...]:
    """The bars of the first output that is marked, or of the first."""
    lines = list[Line]()
    for row in chosen_of(sheet.profile, 1):
        stations = (
            ("a constant", row.constant),
            ("simple learner, raw row", row.raw),
            ("simple learner, received", row.received),
            ("the model", row.model),
        )
        for name, value in stations:
            lines.append(
                Line((name, bar_of(value), f"{row.name} {value_of(value)}"), row.mark if value == row.raw else "")
            )
        if row.not_counted:
            lines.append(Line((f"not counted: {', '.join(row.not_counted)} repeats the label",)))
    return tuple(lines)


def _beside(row: Score) -> str:
    parts = [] if row.constant is None else [f"constant {value_of(row.constant)}"]
    parts += [] if row.simple is None else [f"simple learner {value_of(row.simple)}"]
    return ", ".join(parts)


def _metric(name: str) -> str:
    """What a number measures, without the rows that it is of."""
    return _OF_ROWS.sub("", name.lower().replace(" ", "_"))


def _guessing(row: OwnNumber, sheet: Sheet) -> str:
    """What guessing gives by the script's own function, whose constant answer is the best one for the rows that it got."""
    told = [
        f"{how} {value_of(value)}"
        for how, value in (("constant", row.constant), ("random", row.random))
        if value is not None
    ]
    of_training = [
        one.constant
        for one in sheet.scores
        if one.constant is not None and one.rows_of == "held-out" and _metric(row.name) == _metric(one.name)
    ]
    differs = row.constant is not None and bool(of_training) and all(abs(row.constant - c) > SAME for c in of_training)
    why = ["the first is the best constant for these rows, above it is that of the training rows"] if differs else []
    return f"guessing: {'; '.join([', '.join(told), *why])}" if told else ""


def _way(first: float | None, last: float | None) -> str:
    return " → ".join(value_of(value) for value in (first, last) if value is not None)


def _brief_own(sheet: Sheet) -> tuple[Line, ...]:
    chosen = chosen_of(sheet.own, MOST_LINES["own"])
    return (
        *(
            Line(
                (
                    row.name,
                    _way(row.first, row.last) if row.count > 1 else value_of(row.last),
                    f"best {value_of(row.best)} after update {row.best_update:,}"
                    if row.best_update is not None and row.count > 1
                    else "",
                    _guessing(row, sheet),
                ),
                row.mark,
            )
            for row in chosen
        ),
        *_more(len(sheet.own) - len(chosen), "number"),
    )


def _brief_curves(sheet: Sheet) -> tuple[Line, ...]:
    """The loss, the first of the script's own numbers, the gradient norm if it is marked, and the rate if it changes."""
    ours = ("learning rate", "gradient norm")
    first = next((row for row in sheet.curves if row.name != "loss" and not row.name.startswith(ours)), None)
    shown = [
        row
        for row in sheet.curves
        if row.mark
        or row is first
        or row.name == "loss"
        or (row.name.startswith("learning rate") and max(row.values) > CHANGED * min(row.values))
    ]
    return tuple(
        Line((row.name, blocks(row, sheet.updates), curve(row)), row.mark)
        for row in chosen_of(shown, MOST_LINES["curves"])
        if len(row.values) > 1
    )


def _brief_classes(sheet: Sheet) -> tuple[Line, ...]:
    """The worst of them if one is marked, otherwise how far apart they are."""
    known = [row for row in sheet.classes if row.right is not None]
    if not any(row.mark for row in sheet.classes):
        if len(known) < 2:
            return ()
        worst, best = known[0], known[-1]
        told = f"{len(known)} classes, right from {share_of(worst.right)} ({worst.label}) to {share_of(best.right)} ({best.label})"
        return (Line((told,)),)
    chosen = sheet.classes[: MOST_LINES["classes"]]
    lines = [
        Line(
            (
                f"class {row.label} ({row.output})" if row.output else f"class {row.label}",
                "" if row.drawn is None else f"{row.drawn:,} drawn",
                f"{row.evaluated:,} evaluated",
                "" if row.right is None else f"{share_of(row.right)} right",
                f"taken for {row.taken_for}" if row.taken_for else "",
            ),
            row.mark,
        )
        for row in chosen
    ]
    return (*lines, *_more(len(sheet.classes) - len(chosen), "class"))


def _brief_outputs(sheet: Sheet) -> tuple[Line, ...]:
    """Outputs without a table of classes."""
    classes = bool(sheet.classes)
    shown = [row for row in sheet.outputs if row.mark or row.label_mean is not None or not classes]
    chosen = chosen_of(shown, MOST_LINES["outputs"])
    lines = []
    for row in chosen:
        name, _, _, _, labels, answers = output_cells(row)
        cells = (name, f"labels {labels}" if labels else "", f"answers {answers}" if answers else "")
        if row.classes is not None:
            answered = "" if row.classes_answered is None else f", {row.classes_answered:,} among the answers"
            cells = (name, f"{row.classes:,} among the labels{answered}", "")
        lines.append(Line(cells, row.mark))
    return (*lines, *_more(len(shown) - len(chosen), "output"))


def _brief_columns(sheet: Sheet) -> tuple[Line, ...]:
    """Those that are marked; the input as a whole is shown if it is one row."""
    names = {row.name for row in sheet.columns}
    shown = [row for row in sheet.columns if row.mark or len(names) == 1]
    chosen = chosen_of(shown, MOST_LINES["columns"])
    lines = []
    for row in chosen:
        missing = f"{share_of(row.missing)} missing" if row.missing else ""
        span = "" if row.least is None else f"{value_of(row.least)} to {value_of(row.greatest)}"
        span = value_of(row.least) if row.least == row.greatest else span
        lines.append(Line((row.name, row.rows_of, span, spread_of(row.mean, row.deviation), missing), row.mark))
    if names and not lines:
        return (Line((f"{len(names)} columns, nothing stands out",)),)
    return (*lines, *_more(len(shown) - len(chosen), "column"))


def _brief_layers(sheet: Sheet) -> tuple[Line, ...]:
    if not sheet.layers:
        return ()
    marked = [row for row in sheet.layers if row.mark]
    chosen = marked[: MOST_LINES["layers"] - 1]
    shapes = ["×".join(map(str, row.shape)) for row in chosen]
    lines = [Line((row.name, shape), row.mark) for row, shape in zip(chosen, shapes, strict=True)]
    return (Line((_counted(sheet.layers),)), *lines, *_more(len(marked) - len(chosen), "tensor"))


def _counted(layers: Sequence[Layer]) -> str:
    """How many tensors there are, are trained, and moved."""
    trained = [row for row in layers if row.trains]
    moved = sum(row.moved for row in trained)
    of = "" if len(trained) == len(layers) else f", {len(trained):,} of them trained"
    told = "all moved" if moved == len(trained) and trained else f"{moved:,} moved"
    return f"{len(layers):,} tensor{'s' if len(layers) > 1 else ''}{of}, {told}"


def _brief_pieces(sheet: Sheet) -> tuple[Line, ...]:
    chosen = chosen_of(sheet.pieces, MOST_LINES["pieces"])
    lines = []
    for row in chosen:
        what, times, at, how, where = piece_cells(row)
        told = what if row.times == 1 else f"{what} {times} times"
        told += f"{',' if row.times > 1 else ''} after update{'s' if 'to' in at else ''} {at}" if at else ""
        lines.append(Line((f"{told}{f', {how}' if how else ''}{f' ({where})' if where else ''}",), row.mark))
    return (*lines, *_more(len(sheet.pieces) - len(chosen), "piece"))


def _brief_drawn(sheet: Sheet) -> tuple[Line, ...]:
    chosen = chosen_of(sheet.drawn, MOST_LINES["drawn"])
    lines = []
    for row in chosen:
        name, rows_of, size, distinct, _, each, _, _ = drawn_cells(row)
        told = f"all {size} rows drawn" if not row.never else f"{distinct} of {size} rows drawn"
        times = f", {each} times each" if row.draws > row.distinct else ""
        at_most = (
            f", one of them {row.most:,} times"
            if row.distinct and row.most > MOST_UNEVEN * row.draws / row.distinct
            else ""
        )
        lines.append(Line((f"{rows_of}: {name}, {told}{times}{at_most}",), row.mark))
    return (*lines, *_more(len(sheet.drawn) - len(chosen), "set"))


def _brief_trainings(sheet: Sheet) -> tuple[Line, ...]:
    """How many have each verdict; each by itself where they differ."""
    verdicts = Counter(row.shown for row in sheet.trainings)
    if len(verdicts) < 2:
        return tuple(Line((f"all {count:,}: {shown}",)) for shown, count in verdicts.items())
    counted = Line((", ".join(f"{count:,} {shown}" for shown, count in verdicts.most_common()),))
    chosen = chosen_of(sheet.trainings, MOST_LINES["trainings"])
    lines = [Line((f"{row.number} {f'({row.where}) ' if row.where else ''}{row.shown}: {row.why}",)) for row in chosen]
    return (counted, *lines, *_more(len(sheet.trainings) - len(chosen), "training"))


def _more(count: int, of: str) -> tuple[Line, ...]:
    plural = "" if count == 1 else "es" if of.endswith("s") else "s"
    return (Line((f"and {count:,} more {of}{plural}",)),) if count > 0 else ()


def aligned(lines: Sequence[Line]) -> list[Line]:
    """The lines with one cell each: their cells below each other."""
    count = max((len(line.cells) for line in lines), default=0)
    of = [line.cells for line in lines if len(line.cells) == count]  # a remark of one cell widens no column
    widths = [max((len(cells[i]) for cells in of), default=0) for i in range(count)]
    padded = []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line.cells, widths, strict=False) if width]
        padded.append(Line(("  ".join(cells).rstrip(),), line.mark))
    return padded
