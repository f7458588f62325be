"""Training steps on odd rows: missing, NaN or infinite values, and values far from all others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trainwright.stages import UNTRIED, Extremes, SplitFacts

# At most this many rows are in such a step.
MOST_ROWS = 16


@dataclass(frozen=True, kw_only=True)
class RowStep:
    """What a training step on chosen rows came to."""

    failure: str = ""
    """The exception that it raised."""
    loss: float | None = None

    @property
    def wrong(self) -> str:
        """The exception, the loss if it is not finite, or ""."""
        if self.failure or self.loss is None or math.isfinite(self.loss):
            return self.failure
        return f"the loss is {self.loss}"


Step = Callable[[Sequence[int]], RowStep | None]
"""A training step on these rows, with the initial weights; None if it is not possible."""


def suspicious_rows(facts: SplitFacts, accepts: Sequence[str]) -> set[int]:
    """Rows whose inputs or labels are missing, NaN or infinite."""
    label = facts.labels.column if facts.labels else None
    taken = [c for c in facts.columns if c.name == label or c.name in accepts or c.name.isdigit()]
    return {row for c in taken for row in (*c.missing_rows, *c.non_finite_rows)}


def try_unusable(facts: SplitFacts, accepts: Sequence[str], batch_size: int, step: Step) -> str:
    """What a step on rows with missing or non-finite values comes to; empty: nothing bad, or no such rows."""
    bad = suspicious_rows(facts, accepts)
    if not bad or facts.rows is None:
        return ""
    # Half bad and half good rows in one batch: a loss that ignores unknown labels needs some known ones.
    count = max(1, min(MOST_ROWS, batch_size) // 2)
    others = _others(facts.rows, bad, count)
    usual = step(others) if others else RowStep()
    if usual is not None and usual.wrong:
        return f"{UNTRIED}: {usual.wrong}"
    known = others if batch_size > 1 else []
    tried = step([*known, *sorted(bad)[:count]])
    return tried.wrong if tried is not None else ""


def try_extremes(facts: SplitFacts, accepts: Sequence[str], batch_size: int, step: Step) -> SplitFacts:
    """The facts, in which each of the extremes that reach the model has the loss of a step with and without such rows."""
    label = facts.labels.column if facts.labels else None
    tried = []
    for one in facts.extremes:
        if one.column == label or one.column in accepts or one.column.isdigit():
            tried.append(_tried(one, facts, batch_size, step))
    return replace(facts, extremes=tuple(tried))


def _tried(one: Extremes, facts: SplitFacts, batch_size: int, step: Step) -> Extremes:
    if facts.rows is None:
        return one
    odd, count = {row for found in facts.extremes for row in found.rows}, max(1, min(MOST_ROWS, batch_size) // 2)
    others = _others(facts.rows, odd, 2 * count if batch_size > 1 else 1)
    usual = step(others) if others else None
    if usual is None or usual.wrong or usual.loss is None:
        return one
    known = others[:count] if batch_size > 1 else []
    found = step([*known, *one.rows[:count]])
    if found is None or (found.loss is None and not found.failure):
        return one
    return replace(one, usual_loss=usual.loss, loss=found.loss, failure=found.failure)


def _others(total: int, left_out: set[int], count: int) -> list[int]:
    """The first rows that are not left out."""
    return list(itertools.islice((row for row in range(total) if row not in left_out), count))
