"""The sheet: what was seen in a rehearsal, whether or not anything was found, in tables to take in at a glance.

A `Table` says what its columns are, and how a cell is written; the rows that a run gave it are in the `Sheet`. Each row has a
mark: empty, or in a few words what stands out. A mark accuses nobody; findings do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from trainwright.core.plain import plain, read, read_place
from trainwright.core.sample import ConfusedRow, GeneratedText, Sample

HELD_OUT, TRAINING, EITHER = "held-out", "training", "a set"
# Digits of a number in the JSON: more than anyone reads, and what a float32 has.
DIGITS = 6


class Row(SimpleNamespace):
    """A row of a table: its cells under the columns' keys, and its `mark`."""

    mark: str


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    key: str
    """In the JSON."""
    head: str
    """On a page; `-`: it is not shown there."""
    kind: str
    """`text`, `number`, `share`, `rare` (a share that is left out where it is 0) or `bar` (a number with a bar)."""


@dataclass(frozen=True)
class Table:
    """One part of the sheet."""

    name: str
    """Its key in the JSON, and below its title on a page."""
    title: str
    spec: str
    """Its columns between `; `, as `key=head:kind`; the head may be that key, and without a kind it holds text, names or a place."""
    line: str
    """A row in a terminal, in cells between `; `: of the pieces between two `|`, those are left out that lack a value."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What `spec` says."""
        found = []
        for part in self.spec.split("; "):
            names, _, kind = part.partition(":")
            key, _, head = names.partition("=")
            found.append(Column(key, head or key, kind or "text"))
        return tuple(found)

    def row(self, *, mark: str = "", **cells: Any) -> Row:
        """A row with these cells; the others are empty."""
        blank: dict[str, Any] = {one.key: "" if one.kind == "text" else None for one in self.columns}
        if unknown := cells.keys() - blank.keys():
            raise TypeError(f"{self.title} has no column {', '.join(sorted(unknown))}.")
        return Row(**{**blank, **cells}, mark=mark)

    def read(self, data: Mapping[str, Any]) -> Row:
        """The row that stands in JSON; columns of a later version are left out."""
        known = {one.key: _read_cell(data[one.key], one.kind) for one in self.columns if one.key in data}
        return self.row(**known, mark=data["mark"])


def _read_cell(value: Any, kind: str) -> Any:
    if isinstance(value, dict):
        return read_place(value)
    if isinstance(value, list):
        return tuple(value)
    return float(value) if isinstance(value, str) and kind != "text" else value


SCORES = Table(
    "scores",
    "Scores",
    # Positions: each row has a label for many of them, and these are counted. The first score of training rows is of the
    # earliest calls that were kept; a constant is the best that one answer for all rows reaches.
    "rows_of=set; rows=number:number; unit=of; name=score; scale=in; output; first:number; last:number; "
    "constant=a constant:number; simple=a simple learner:number",
    "{rows_of}, {rows} {unit}; {name}| in {scale}| ({output}); {first} → |{last}; "
    "constant {constant}|, simple learner {simple}",
)
PROFILE = Table(
    "profile",
    "Profile",
    # What is known of the labels of one output at each station between the script's own row and the model's answer.
    "output; rows:number; name=score; constant=a constant:bar; raw=simple learner, raw row:bar; "
    "received=on what is received:bar; model=the model:bar; not_counted=not counted; carriers=-",
    "",
)
OWN = Table(
    "own",
    "The script's own numbers",
    # No best: whether higher or lower is better is not known. The last two: what the script's own function gives for the best
    # constant answer, and for labels in random order.
    "name=number; source=from; count=-:number; first:number; last:number; best:number; best_update=after update:number; "
    "constant=a constant:number; random=at random:number",
    "{name}; {first} → |{last}; best {best} after update {best_update}; {guessing}",
)
CLASSES = Table(
    "classes",
    "Classes",
    # Without an evaluation, training answers are shown: so it is with outputs.
    "label=class; output; drawn=drawn in training:bar; evaluated:bar; answered=answers in training:bar; right:share; "
    "taken_for=mostly taken for",
    "class {label}| ({output}); {drawn} drawn; {evaluated} evaluated|{answered} answers in training; {right} right; "
    "taken for {taken_for}",
)
OUTPUTS = Table(
    "outputs",
    "Outputs",
    "name=output; source=seen by; drawn=drawn in training:number; evaluated:number; answered=answers in training:number; "
    "classes=classes of labels:number; classes_answered=of answers:number; label_mean=labels, mean:number; label_deviation=deviation:number; "
    "answer_mean=answers, mean:number; answer_deviation=deviation:number",
    "{name}; labels {label_mean} ± {label_deviation}|{classes} among the labels|, {classes_answered} among the answers; "
    "answers {answer_mean} ± {answer_deviation}",
)
INPUTS = Table(
    "columns",
    "Inputs",
    "name=input; rows_of=set; rows:number; least:number; mean:number; deviation:number; greatest:number; missing:rare",
    "{name}; {rows_of}; {least}| to {greatest}; {mean} ± {deviation}; {missing} missing",
)
WEIGHTS = Table(
    "layers",
    "Weights",
    # Size: root mean square, before the first update and after the last.
    "name=tensor; shape; before=size before:number; after:number; gradient; moved; trains=trained",
    "{name}; {shape}",
)
PIECES = Table(
    "pieces",
    "Evaluated, saved, loaded",
    "what; times:number; first_update=after update:number; last_update=to:number; how; where=line:place",
    "{what}| {times}|{at}|, {how}| ({where})",
)
DRAWN = Table(
    "drawn",
    "Rows drawn",
    "name=data; rows_of=set; size=rows:number; distinct=drawn:number; never:number; draws=-:number; each=times each:number; "
    "most=at most:number; where=line:place",
    "{rows_of}: {name}, {distinct} {size} rows drawn|, {each} times each|, one of them {most} times",
)
TRAININGS = Table(
    "trainings",
    "Trainings",
    "number=training:number; kind=by; begins=after update:number; updates:number; planned:number; shown=verdict; "
    "why=because; where=line:place",
    "{number}| ({where})| {shown}: {why}",
)
# In the order of a page.
TABLES = (SCORES, PROFILE, OWN, CLASSES, OUTPUTS, INPUTS, WEIGHTS, PIECES, DRAWN, TRAININGS)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A number over the updates, thinned out."""

    name: str
    """`loss`, `learning rate`, `gradient norm`, or one of the script's own."""
    updates: tuple[int, ...]
    values: tuple[float, ...]
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What was seen of a script that ran."""

    updates: int
    planned: int | None = None
    """Updates that all trainings planned; None: not known."""
    seconds: float = 0.0
    cut_at: int | None = None
    """The update at which its training was ended because the time was over; None: it was not."""
    end: str = ""
    """The exception or signal that ended it; empty: it ended by itself."""
    isolation: str = ""
    mended: str = ""
    """What was changed in memory of the script that ran; empty: nothing."""
    kept_away: tuple[str, ...] = ()
    best_update: int | None = None
    """By the script's own number: after which update it was best; and below, whose weights were kept."""
    kept_update: int | None = None
    scores: tuple[Row, ...] = ()
    profile: tuple[Row, ...] = ()
    own: tuple[Row, ...] = ()
    classes: tuple[Row, ...] = ()
    outputs: tuple[Row, ...] = ()
    columns: tuple[Row, ...] = ()
    layers: tuple[Row, ...] = ()
    curves: tuple[Curve, ...] = ()
    pieces: tuple[Row, ...] = ()
    drawn: tuple[Row, ...] = ()
    trainings: tuple[Row, ...] = ()
    """Empty: there is one only."""
    confused: tuple[ConfusedRow, ...] = ()
    """Of the last evaluation; empty: there are many classes, or none."""
    samples: tuple[Sample, ...] = ()
    """Single rows; empty: none may be shown, or none was seen with its label."""
    generated: tuple[GeneratedText, ...] = ()
    """Empty: no model generates text, or none may be shown."""

    @property
    def share(self) -> float | None:
        """The share of the plan that was seen, 0 to 1; None: the plan is not known."""
        return min(self.updates / self.planned, 1.0) if self.planned else None


def sheet_to_dict(sheet: Sheet | None) -> dict[str, Any] | None:
    """The sheet as plain data for JSON."""
    return None if sheet is None else {**plain(sheet, DIGITS), "seconds": round(sheet.seconds, 2)}


def sheet_from_dict(data: Mapping[str, Any] | None) -> Sheet | None:
    """The sheet that `sheet_to_dict` wrote."""
    if data is None:
        return None
    rows = {table.name: tuple(map(table.read, data.get(table.name, ()))) for table in TABLES}
    rest: Sheet = read(Sheet, {name: value for name, value in data.items() if name not in rows})
    return replace(rest, **rows)  # type: ignore[arg-type]
