"""Whether the labels of the sets belong to their inputs, measured on what was read of them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from trainwright.probes.labels.alignment import FEWEST_ROWS, measure_alignment
from trainwright.stages.alignment import Alignment
from trainwright.stages.dataset import Split, SplitFacts


def alignment_of(split: Split, facts: SplitFacts, accepts: Sequence[str]) -> Alignment | None:
    """How well the labels of a set fit its inputs; None where that cannot be told."""
    labels = facts.labels
    if labels is None or labels.kind not in ("class", "real") or split.failure is not None:
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError):  # rows of kinds that make no table
        return measure_alignment(_columns(split, labels.column, accepts), labels.column, labels.kind, accepts)
    return None


def _columns(split: Split, label: str, accepts: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Rows by column: the whole columns, or the sampled items where these hold what the columns do not."""
    names = {k for item in split.items[:1] for k in item}
    lacking = [n for n in names if n not in split.columns and (n in accepts or n != label)]
    if split.columns and not lacking:
        rows = min((len(c) for c in split.columns.values()), default=0)
        return {n: c[:rows] for n, c in split.columns.items()}
    if len(split.items) < FEWEST_ROWS:
        return {}
    return {n: [item[n] for item in split.items] for n in names}
