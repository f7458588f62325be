"""What a run has come to, and which of two ended better: by scores at evaluation, else in training, else by losses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainwright.rehearsal.record import Record
from trainwright.review.numbers import direction_of, series_of
from trainwright.review.rows import PLAINEST, AnsweredRows, evaluated_rows, trained_rows

# A difference says something if it is larger than that between runs of one kind, and than this: of a score, and of a
# loss as a share of it. As in the exam since its first draw.
SCORE_TOLERANCE, LOSS_TOLERANCE = 0.03, 0.10
# Of the training losses, the last ones.
LAST_SHARE = 0.25
# Numbers of a game: higher is better.
_RETURNS = re.compile(r"reward|return|score")


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number that a run ended with."""

    name: str
    value: float
    is_score: bool
    """Whether higher is better; otherwise it is a loss or an error."""
    is_evaluated: bool
    """Whether it is of an evaluation, not of training."""
    is_own: bool = False
    """Whether the script reports it; otherwise the watchers saw it."""


@dataclass(frozen=True)
class Comparison:
    """One measure of two sets of runs."""

    measure: Measure
    ones: tuple[float, ...]
    others: tuple[float, ...]

    def __str__(self) -> str:
        one, other = (" to ".join(f"{v:.4g}" for v in sorted({min(s), max(s)})) for s in (self.ones, self.others))
        return f"{self.measure.name} {one} against {other}"

    @property
    def is_better(self) -> bool:
        """Whether the worst of the ones is better than the best of the others, by more than spread and tolerance."""
        return self._is_better(self.ones, self.others)

    @property
    def is_worse(self) -> bool:
        """The same the other way round."""
        return self._is_better(self.others, self.ones)

    @property
    def is_broken(self) -> bool:
        """Whether only the others are no numbers any more."""
        return all(map(math.isfinite, self.ones)) and not all(map(math.isfinite, self.others))

    def _is_better(self, ones: Sequence[float], others: Sequence[float]) -> bool:
        if not all(map(math.isfinite, (*ones, *others))):
            return all(map(math.isfinite, ones))
        tolerance = SCORE_TOLERANCE if self.measure.is_score else LOSS_TOLERANCE * max(map(abs, (*ones, *others)))
        margin = max(tolerance, max(ones) - min(ones), max(others) - min(others))
        gain = min(ones) - max(others) if self.measure.is_score else min(others) - max(ones)
        return gain > margin


def measures_of(record: Record) -> list[Measure]:
    """The numbers that a run ended with, each name once."""
    found: dict[str, Measure] = {}
    for one in (*_agreements(record), *_own(record), *_losses(record)):
        found.setdefault(one.name, one)
    return list(found.values())


def compare(ones: Sequence[Sequence[Measure]], others: Sequence[Sequence[Measure]]) -> list[Comparison]:
    """What all runs of both sets ended with."""
    runs = [{m.name: m.value for m in run} for run in (*ones, *others)]
    return [
        Comparison(m, tuple(run[m.name] for run in runs[: len(ones)]), tuple(run[m.name] for run in runs[len(ones) :]))
        for m in ones[0]
        if all(m.name in run for run in runs)
    ]


def deciding(compared: Sequence[Comparison]) -> list[Comparison]:
    """What says which set ended better: scores at evaluation (agreement with labels, and the script's own, as either may
    be of rows that the other does not see), else scores in training, else losses (which say nothing where they are not
    the same loss); and what is no number any more."""
    scores = [c for c in compared if c.measure.is_score]
    tiers = ([c for c in scores if c.measure.is_evaluated], scores, list(compared))
    chosen = next((tier for tier in tiers if tier), [])
    return [*chosen, *(c for c in compared if c not in chosen and c.is_broken)]


def _agreements(record: Record) -> Iterator[Measure]:
    """How far answers agree with labels: in the last evaluation of each output, and in training."""
    # Of the sets of an output, the one that was kept out speaks.
    for rows in sorted(evaluated_rows(record), key=lambda one: not one.is_held_out):
        yield from _plain(rows, "evaluation")
    for rows in trained_rows(record):
        yield from _plain(rows, "training")


def _plain(rows: AnsweredRows, of: str) -> Iterator[Measure]:
    for score in rows.scores:
        if score.name in PLAINEST:
            name = f"{score.name} of {rows.output}, {of}"
            yield Measure(name=name, value=score.value, is_score=True, is_evaluated=not rows.trains)


def _own(record: Record) -> Iterator[Measure]:
    """What the script reported last, under each name that says which way is better."""
    for series in series_of(record):
        if direction := direction_of(series.name) or int(bool(_RETURNS.search(series.name))):
            # What frameworks log is of training, unless it says otherwise; a line that is printed, unless it says that.
            evaluated = series.is_held_out if series.is_typed else not series.is_of_training
            name = f"its own {series.name}"
            yield Measure(
                name=name, value=series.values[-1], is_score=direction > 0, is_evaluated=evaluated, is_own=True
            )


def _losses(record: Record) -> Iterator[Measure]:
    last = [value for _, value in record.losses[-max(1, int(len(record.losses) * LAST_SHARE)) :]]
    if last:
        yield Measure(name="training loss", value=sum(last) / len(last), is_score=False, is_evaluated=False)
