"""Curves and scores as pictures: axes, points and marks in an SVG's own units."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainwright.core.sheet import HELD_OUT, Curve, Row, Sheet
from trainwright.report.curves import is_logarithmic
from trainwright.report.words import value_of

# A chart's size, and the room for its numbers around the lines. A character of them is about so wide.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, CHARACTER = 400, 220, 46, 390, 30, 188, 7
# Lines of one chart, as many as there are colours; and scores that are drawn: the table has all of them.
MOST_LINES, MOST_BARS = 5, 10
# Ticks of an axis, about; and the decades of a logarithmic one that each have a tick.
TICKS, MOST_DECADES = 4, 6
# Nothing greater is drawn: a difference of two such numbers would not be finite.
GREATEST = 1e300
# Words of a number's name that say of which rows it is, and not what it measures.
_ROWS = re.compile(
    r"(?i)(?<![a-z])(?:train(ing)?|e?val(id|uation|idation)?|test|dev|epoch|step|reported)(?![a-z])[\W_]*"
)
# What is drawn of a score, in the order in which one lies above the other.
PLACES = {"constant": "best constant answer", "first": "first", "last": "at the end", "simple": "a simple learner"}


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What an axis spans, and its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a number is, 0 to 1."""
        low, high, at = (math.log10(v) if self.is_logarithmic else v for v in (self.low, self.high, value))
        return min(max((at - low) / ((high - low) or 1.0), 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Numbers of one kind over the updates."""

    title: str
    curves: Sequence[Curve]
    across: Axis
    down: Axis
    levels: Mapping[str, float]
    """The best constant answers, by their numbers in words."""
    marks: Mapping[int, Sequence[str]]
    """What is known of an update."""

    def x(self, update: float) -> float:
        """How far to the right an update is."""
        return LEFT + (RIGHT - LEFT) * self.across.share(update)

    def y(self, value: float) -> float:
        """How far down a number is."""
        return BOTTOM - (BOTTOM - TOP) * self.down.share(value)

    def parts(self, curve: Curve) -> list[list[tuple[int, float]]]:
        """Updates and numbers of each part of a line, which is broken where the number is not finite."""
        parts: list[list[tuple[int, float]]] = [[]]
        for update, value in zip(curve.updates, curve.values, strict=True):
            parts = [*parts[:-1], [*parts[-1], (update, value)]] if math.isfinite(value) else [*parts, []]
        return [part for part in parts if part]

    def told(self, curve: Curve) -> str:
        """A line's first and last number, and between which it lies."""
        known = [value for value in curve.values if math.isfinite(value)]
        ends = (curve.values[0], curve.values[-1])
        beyond = known and not {min(known), max(known)} <= {*ends}
        between = f", between {value_of(min(known))} and {value_of(max(known))}" if beyond else ""
        return f"{' → '.join(map(value_of, ends))}{between}"


def charts(sheet: Sheet) -> list[Chart]:
    """The curves, those of one measure together."""
    of: dict[str, list[Curve]] = {}
    for curve in sheet.curves:
        of.setdefault(subject_of(curve.name), []).append(curve)
    parts = [(name, one[i : i + MOST_LINES]) for name, one in of.items() for i in range(0, len(one), MOST_LINES)]
    return [_chart(name, part, sheet) for name, part in parts]


def subject_of(name: str) -> str:
    """What a number measures, without the rows that it is of."""
    ours = next((one for one in ("learning rate", "gradient norm") if name.startswith(one)), "")
    return ours or re.sub(r"[\W_]+", " ", _ROWS.sub("", name)).strip().lower() or name


def _chart(subject: str, curves: Sequence[Curve], sheet: Sheet) -> Chart:
    names = {curve.name for curve in curves}
    guessed = [row.constant for row in sheet.own if row.name in names and row.constant is not None]
    levels = {value_of(value): value for value in guessed if math.isfinite(value)}
    known = [*levels.values(), *(value for curve in curves for value in curve.values if math.isfinite(value))]
    is_log = all(value > 0 for value in known) and any(map(is_logarithmic, curves))
    last = max(sheet.updates, 1)
    updates = axis_of([0, last])
    evaluated = [row.first_update for row in sheet.pieces if row.what.startswith("evaluated")]
    first = min((update for update in evaluated if update is not None), default=None)
    seen = {"first evaluated": first, "best": sheet.best_update, "kept": sheet.kept_update, "cut": sheet.cut_at}
    known_updates = {update for update in seen.values() if update is not None}
    return Chart(
        title=subject,
        curves=curves,
        across=replace(updates, high=last, ticks=tuple(t for t in updates.ticks if t <= last and t == round(t))),
        down=axis_of(known or [0, 1], is_log=is_log),
        levels=levels,
        marks={at: [name for name, of in seen.items() if of == at] for at in sorted(known_updates)},
    )


def axis_of(values: Sequence[float], *, is_log: bool = False) -> Axis:
    """An axis that begins and ends at round numbers; logarithmic: at powers of ten."""
    low, high = max(min(values), -GREATEST), min(max(values), GREATEST)
    if is_log:
        first, last = math.floor(math.log10(min(low, high))), math.ceil(math.log10(high))
        powers = range(max(first, -307), last + 1, math.ceil((last - first) / MOST_DECADES) or 1)
        return Axis(low=10.0 ** powers[0], high=10.0**last, ticks=tuple(10.0**i for i in powers), is_logarithmic=True)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # one number only
        low, high = (min(0.0, 2 * low), max(0.0, 2 * high)) if low else (-1.0, 1.0)
    rough = (high - low) / TICKS
    base = 10.0 ** math.floor(math.log10(rough))
    step = base * min((1, 2, 2.5, 5, 10), key=lambda one: abs(one - rough / base))
    ticks = [step * i for i in range(math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6) + 1)]
    return Axis(low=ticks[0], high=ticks[-1], ticks=tuple(float(f"{tick:.6g}") for tick in ticks))


def bars(sheet: Sheet) -> list[tuple[Row, Axis, dict[str, float]]]:
    """The scores that are drawn, those of held-out rows first, with an axis each and what stands on it."""
    found = []
    for row in sorted(sheet.scores, key=lambda row: row.rows_of != HELD_OUT):
        known = {kind: getattr(row, kind) for kind in PLACES}
        known = {kind: value for kind, value in known.items() if value is not None and math.isfinite(value)}
        if "last" in known:
            is_share = all(0 <= value <= 1 for value in known.values())
            found.append((row, axis_of([*known.values(), *([0.0, 1.0] if is_share else [])]), known))
    return found[:MOST_BARS]
