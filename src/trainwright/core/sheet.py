"""The sheet: what was seen in a rehearsal, whether or not anything was found, in tables to take in at a glance.

Each row has a mark: empty, or in a few words what stands out. A mark accuses nobody; findings do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.core.finding import Place
from trainwright.core.plain import place, plain, read_place
from trainwright.core.sample import ConfusedRow, GeneratedText, Sample, SamplePart, Span

HELD_OUT, TRAINING, EITHER = "held-out", "training", "a set"


@dataclass(frozen=True, kw_only=True)
class Score:
    """How well the model's answers agree with the labels, on the rows of one kind."""

    name: str
    """`accuracy`, `R2`, `log loss` and so on."""
    output: str
    """Which output it is of; empty if there is one only."""
    rows_of: str
    """`held-out` or `training`."""
    rows: int
    first: float | None
    """In the earliest evaluation; of training rows, in the earliest calls that were kept."""
    last: float | None
    constant: float | None = None
    """The best that one answer for all rows reaches."""
    simple: float | None = None
    """What a simple learner reaches on the same inputs; None: it was not tried."""
    mark: str = ""
    unit: str = "rows"
    """`positions`: each row has a label for many of them, and these are counted."""


@dataclass(frozen=True, kw_only=True)
class OwnNumber:
    """A number that the script reports about its training."""

    name: str
    source: str
    """`printed`, `logged`, `returned` or `history`."""
    count: int
    first: float
    last: float
    best: float | None = None
    """None: whether higher or lower is better is not known."""
    best_update: int | None = None
    constant: float | None = None
    """What the script's own function gives for a constant answer, and below for labels in random order; None: not known."""
    random: float | None = None
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """One class of an output."""

    label: str
    output: str
    """Which output it is of; empty if there is one only."""
    drawn: int | None
    """Rows of it that training drew; None: not counted."""
    evaluated: int
    """Rows of it in the last evaluation."""
    right: float | None
    """The share of these that got the right answer."""
    taken_for: str = ""
    """What the others were mostly answered with."""
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class OutputRow:
    """One output of the model or, where it has several numbers, one of them."""

    name: str
    source: str
    """How outputs and labels were seen together."""
    drawn: int
    """Labelled rows that training drew, and below those of the last evaluation."""
    evaluated: int
    classes: int | None = None
    """Classes among the evaluated labels, and below among the answers; None: numbers."""
    classes_answered: int | None = None
    label_mean: float | None = None
    label_deviation: float | None = None
    answer_mean: float | None = None
    answer_deviation: float | None = None
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One number of the model's input, or all of them together."""

    name: str
    rows_of: str
    """`held-out` or `training`."""
    rows: int
    least: float | None
    greatest: float | None
    mean: float | None
    deviation: float | None
    missing: float = 0.0
    """The share that is no finite number."""
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One tensor of weights."""

    name: str
    shape: tuple[int, ...]
    trains: bool
    """Whether it is trainable and an optimizer that stepped holds it."""
    before: float
    """Root mean square before the first update, and below after the last."""
    after: float
    moved: bool
    gradient: bool
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A number over the updates, thinned out."""

    name: str
    """`loss`, `learning rate`, `gradient norm`, or one of the script's own."""
    updates: tuple[int, ...]
    values: tuple[float, ...]
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What was evaluated, saved, copied, loaded or kept as best."""

    what: str
    """`evaluated`, `saved`, `copied`, `loaded` or `kept as best`."""
    times: int
    first_update: int | None
    """None: not known."""
    last_update: int | None
    how: str
    """The mode, the file, or the number by which it is the best."""
    where: Place | None = None
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """One of several trainings of a script, judged by itself."""

    number: int
    kind: str
    """`Trainer`, `Lightning`, `fit` or `loop`."""
    begins: int
    """How many updates had been made before it."""
    updates: int
    planned: int | None
    """None: not known."""
    shown: str
    """Its verdict, and below what it rests on."""
    why: str
    where: Place | None = None
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class RowsDrawn:
    """The rows that were drawn from one set."""

    name: str
    rows_of: str
    """`training`; `held-out` if it was evaluated and no update was made with it; `a set` if neither was seen."""
    size: int
    distinct: int
    """How many of its rows were drawn at least once."""
    draws: int
    most: int
    """How often the row that was drawn most often was."""
    where: Place | None = None
    mark: str = ""

    @property
    def never(self) -> int:
        """How many rows were never drawn."""
        return max(self.size - self.distinct, 0)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What is known of the labels of one output at each station between the script's own row and the model's answer."""

    name: str
    """`accuracy` or `R2`."""
    output: str
    rows: int
    constant: float
    raw: float
    """What a simple learner reaches on the rows as the script held them, and below as the model received them."""
    received: float
    model: float
    not_counted: tuple[str, ...] = ()
    """Columns that repeat the label."""
    carriers: tuple[str, ...] = ()
    """Columns that tell of the label and that are not among the inputs."""
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
    kept_away: tuple[str, ...] = ()
    best_update: int | None = None
    """By the script's own number: after which update it was best; and below, whose weights were kept."""
    kept_update: int | None = None
    scores: tuple[Score, ...] = ()
    profile: tuple[Profile, ...] = ()
    own: tuple[OwnNumber, ...] = ()
    classes: tuple[ClassRow, ...] = ()
    outputs: tuple[OutputRow, ...] = ()
    columns: tuple[Column, ...] = ()
    layers: tuple[Layer, ...] = ()
    curves: tuple[Curve, ...] = ()
    pieces: tuple[Piece, ...] = ()
    drawn: tuple[RowsDrawn, ...] = ()
    trainings: tuple[TrainingRow, ...] = ()
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


_TABLES: dict[str, type] = {
    "scores": Score,
    "profile": Profile,
    "own": OwnNumber,
    "classes": ClassRow,
    "outputs": OutputRow,
    "columns": Column,
    "layers": Layer,
    "curves": Curve,
    "pieces": Piece,
    "drawn": RowsDrawn,
    "trainings": TrainingRow,
    "confused": ConfusedRow,
    "samples": Sample,
    "generated": GeneratedText,
}
# What lies inside of these rows.
_PARTS: dict[str, type] = {"SamplePart": SamplePart, "Span": Span}


def sheet_to_dict(sheet: Sheet | None) -> dict[str, Any] | None:
    """The sheet as plain data for JSON."""
    if sheet is None:
        return None
    written = {name: _plain(value) for name, value in vars(sheet).items()}
    written["seconds"] = round(sheet.seconds, 2)
    for name in _TABLES:
        written[name] = _rows(getattr(sheet, name))
    return written


def _rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [{k: _plain(v) for k, v in vars(row).items()} for row in rows]


def samples_to_list(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    """Single rows as plain data for JSON."""
    return _rows(samples)


def samples_from_list(data: Iterable[Mapping[str, Any]]) -> tuple[Sample, ...]:
    """The rows that `samples_to_list` wrote."""
    return tuple(_read(row, Sample) for row in data)


def sheet_from_dict(data: Mapping[str, Any] | None) -> Sheet | None:
    """The sheet that `sheet_to_dict` wrote."""
    if data is None:
        return None
    tables = {name: tuple(_read(row, made) for row in data.get(name, ())) for name, made in _TABLES.items()}
    rest = {name: value for name, value in data.items() if name not in _TABLES}
    return Sheet(**{**_values(rest, Sheet), **tables})


def _read(row: Mapping[str, Any], made: type) -> Any:
    return made(**_values(row, made))


def _values(data: Mapping[str, Any], made: type) -> dict[str, Any]:
    """The fields that this version knows; those of a later one are left out."""
    known = {field.name: str(field.type) for field in dataclasses.fields(made)}
    return {name: _read_value(value, known[name]) for name, value in data.items() if name in known}


def _read_value(value: Any, kind: str) -> Any:
    if "Place" in kind:
        return read_place(value)
    if isinstance(value, dict):
        return _read(value, next(made for name, made in _PARTS.items() if name in kind))
    if isinstance(value, list):
        return tuple(_read_value(one, kind) for one in value)
    return float(value) if "float" in kind and value is not None else value


def _plain(value: Any) -> Any:
    if isinstance(value, Place):
        return place(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, (SamplePart, Span)):
        return {name: _plain(held) for name, held in vars(value).items()}
    # Six digits are more than anyone reads, and what a float32 has.
    return plain(float(f"{value:.6g}")) if isinstance(value, float) else value
