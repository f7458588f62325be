"""Whether each set's labels belong to its inputs, measured on the rows that were read."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from trainwright.probes.labels.alignment import FEWEST_ROWS, measure_alignment
from trainwright.probes.labels.copies import label_copy
from trainwright.stages import Alignment, LabelCopy, Split, SplitFacts


def alignment_of(split: Split, facts: SplitFacts, accepts: Sequence[str]) -> Alignment | None:
    """How well a set's labels fit its inputs; None if that cannot be determined."""
    labels = facts.labels
    if labels is None or labels.kind not in ("class", "real") or split.failure is not None:
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError):  # rows of types that do not form a table
        return measure_alignment(_columns(split, labels.column, accepts), labels.column, labels.kind, accepts)
    return None


def label_copy_of(split: Split, facts: SplitFacts, accepts: Sequence[str]) -> LabelCopy | None:
    """Input features that tell the label of every row; None if there are none or if not all rows were read."""
    labels = facts.labels
    if labels is None or labels.kind not in ("class", "real") or split.failure is not None or not facts.labels_complete:
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError):  # rows of types that do not form a table
        return label_copy(split.columns, labels.column, labels.kind, accepts)
    return None


def _columns(split: Split, label: str, accepts: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Rows by column: the whole columns, or the sampled items if these hold values that the columns lack."""
    names = {k for item in split.items[:1] for k in item}
    lacking = [n for n in names if n not in split.columns and (n in accepts or n != label)]
    if split.columns and not lacking:
        rows = min((len(c) for c in split.columns.values()), default=0)
        return {n: c[:rows] for n, c in split.columns.items()}
    if len(split.items) < FEWEST_ROWS:
        return {}
    return {n: [item[n] for item in split.items] for n in names}
