"""Unusable training rows: their inputs or labels are missing, NaN or infinite."""

from __future__ import annotations

from collections.abc import Sequence

from trainwright.stages.dataset import SplitFacts


def suspicious_rows(facts: SplitFacts, accepts: Sequence[str]) -> set[int]:
    """Rows whose inputs or labels are missing, NaN or infinite."""
    label = facts.labels.column if facts.labels else None
    taken = [c for c in facts.columns if c.name == label or c.name in accepts or c.name.isdigit()]
    return {row for c in taken for row in (*c.missing_rows, *c.non_finite_rows)}
