"""Whether each set's labels belong to its inputs, and the likely origin of labels that are all equal."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import Named, objects_in_scope
from trainwright.frameworks.label_names import is_like_label
from trainwright.probes.labels.alignment import FEWEST_ROWS, measure_alignment
from trainwright.probes.labels.copies import label_copy
from trainwright.stages import Alignment, LabelCopy, LabelSource, Split, SplitFacts
from trainwright.stages.dataset import FEW_VALUES
from trainwright.tensors.items import length


def label_sources(
    train: SplitFacts,
    evaluation: SplitFacts | None,
    held: Split | None,
    scope: Mapping[str, Any],
    passed: Sequence[Any],
    sizes: Sequence[int] = (),
) -> Iterator[LabelSource]:
    """Values that the training labels may have been derived from, if all labels are the same.

    Args:
        held: the part of the evaluation set that was read.
        scope: the script's objects.
        passed: the training and evaluation sets.
        sizes: other numbers of rows that the labels had before some were selected.
    """
    labels = train.labels
    if labels is None or labels.kind not in ("class", "text") or len(labels.census) != 1 or not labels.ignored < 1:
        return
    several_held = evaluation is not None and evaluation.labels is not None and evaluation.labels.classes > 1
    for column in train.columns:
        if column.name == labels.column or len(column.values) < 2 or column.kind not in ("text", "integer", "boolean"):
            continue
        absent = evaluation is None or evaluation.column(column.name) is None
        if is_like_label(column.name) or (absent and several_held) or _splits(held, column.name, labels.column, column):
            yield LabelSource(expression=column.name, values=column.values, rows=column.counted, own_column=True)
    yield from _sources_in_scope(labels.column, [train.rows, *sizes], scope, passed)


def _splits(held: Split | None, name: str, label: str, column: Any) -> bool:
    """Whether evaluation rows with the training set's values of a column have different labels."""
    if held is None or name not in held.columns or label not in held.columns:
        return False
    seen = {str(y) for x, y in zip(held.columns[name], held.columns[label]) if x in column.values}
    return len(seen) > 1


def _sources_in_scope(
    label: str, rows: Sequence[int | None], scope: Mapping[str, Any], passed: Sequence[Any]
) -> Iterator[LabelSource]:
    found: list[LabelSource] = []
    sizes = {*rows}
    for named in objects_in_scope(scope):
        if any(named.value is p for p in passed):
            continue
        for expression, name, values in _label_columns(named, label):
            census = _census(values)
            if len(census) == 1 and name == label:
                sizes.add(len(values))  # the labels were equal even before rows were selected
            elif len(census) > 1:
                found.append(LabelSource(expression=expression, values=census, rows=len(values)))
    yield from (source for source in found if source.rows in sizes)


def _label_columns(named: Named, label: str) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """Columns of an object with label-like names, or the object itself: expression, name, values."""
    value, count = named.value, length(named.value)
    if not count:
        return
    with contextlib.suppress(Exception):  # a user object that only looks like a table
        names = getattr(value, "column_names", None) or getattr(value, "columns", None)
        names = list(value) if names is None and isinstance(value, dict) else names
        if names is not None:
            for name in names:
                if isinstance(name, str) and (name == label or is_like_label(name)):
                    column = value[name]
                    column = column if isinstance(column, list) or hasattr(column, "tolist") else list(column)
                    yield f'{named.expression}["{name}"]', name, column
        elif is_like_label(named.expression) and (isinstance(value, (list, tuple)) or np.ndim(value) == 1):
            yield named.expression, named.expression, value


def _census(values: Sequence[Any]) -> dict[int | float | str, int]:
    """How often each value occurs; empty if there are many values, for vectors, and if all are missing."""
    array = np.asarray(values, dtype=object if isinstance(values, (list, tuple)) else None)
    if array.ndim != 1:
        return {}
    counts: dict[Any, int] = {}
    for value in array.tolist():
        if isinstance(value, (str, int, bool)) or (isinstance(value, float) and value.is_integer()):
            counts[value] = counts.get(value, 0) + 1
        elif value is not None and not (isinstance(value, float) and math.isnan(value)):
            return {}
        if len(counts) > FEW_VALUES:
            return {}
    return counts


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
