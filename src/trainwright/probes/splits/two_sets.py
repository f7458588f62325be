"""Comparison of the training and evaluation sets: rows in common, and inputs on different scales."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from trainwright.probes.splits.census import overlap
from trainwright.probes.splits.scaling import measure_scaling
from trainwright.probes.splits.values import evenly, plain_values
from trainwright.stages import Contradictions, Copies, Scaling, Split, SplitFacts

OVERLAP_NAMED = 100_000
# How many repeated rows are compared with others; how many others; and rows per set for measuring the scale.
MOST_REPEATED, MOST_ROWS = 200, 2_000
# The same for rows of words or tokens, which are compared one by one.
MOST_REPEATED_BAGS, MOST_BAGS = 60, 600
# At most this many numbers in all; of a longer row, this many evenly spaced values are used.
MOST_VALUES, MOST_COLUMNS = 20_000_000, 2_000


def between(
    train: Split, trained: SplitFacts, held: Split | None, evaluated: SplitFacts | None, inputs: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields of DatasetFacts that compare rows: of the evaluation set with training's, and of training with each other.

    Args:
        train: the training rows that were read, and the set's facts.
        held: the evaluation rows that were read, and the set's facts.
        inputs: the columns that the model takes; empty for all but the labels.
    """
    shared = overlap(trained, evaluated)
    found: dict[str, Any] = {
        "overlap": len(shared),
        "overlap_rows": tuple(shared[:OVERLAP_NAMED]),
        "contradictions": contradictions(train, trained, held, inputs),
    }
    if held is None or evaluated is None or trained.labels is None or evaluated.labels is None:
        return found
    label, kind = trained.labels.column, trained.labels.kind
    names = _input_columns(train, held, label, inputs)
    one_a_row = kind == "class" or (kind == "real" and trained.labels.per_row == 1)
    return {
        **found,
        "copies": _copies(train, held, label, names, shared) if shared else None,
        "scaling": _scaling(train, held, label, names, kind) if one_a_row else None,
    }


def _copies(
    train: Split, held: Split, label: str, names: Sequence[str], shared: Sequence[tuple[int, int]]
) -> Copies | None:
    """How similar the rows in both sets are to other training rows, and whether their labels are repeated too."""
    some = [shared[i] for i in evenly(range(len(shared)), MOST_ROWS)]
    targets = bags_of(held, [label], [e for e, _ in some]), bags_of(train, [label], [t for _, t in some])
    far = _far_from_others(train, names, sorted({t for _, t in shared}))
    evaluated, trained = targets
    if far is None or evaluated is None or trained is None:
        return None
    return Copies(
        same_label_share=float(np.mean([one == other for one, other in zip(evaluated, trained)])),
        nearest_differing=far[0],
    )


def contradictions(
    train: Split, facts: SplitFacts, held: Split | None, inputs: Sequence[str] = ()
) -> Contradictions | None:
    """Training rows with the same inputs and different classes; None if there are none, or if the labels are no classes.

    The rows of a stream may be episodes, which number their classes anew.
    """
    labels = facts.labels
    if labels is None or labels.kind != "class" or train.kind != "map" or len(facts.hashes) == facts.hashed:
        return None
    rows = list(facts.hash_rows)
    found = values_of(train, labels.column, rows)
    if found is None:
        return None
    groups: dict[int, list[tuple[int, bytes]]] = {}
    for row, digest, label in zip(rows, facts.row_hashes, found):
        groups.setdefault(digest, []).append((row, label.tobytes()))
    differing = [g for g in groups.values() if len({label for _, label in g}) > 1]
    repeated = sorted(row for g in differing for row, _ in g)
    far = _far_from_others(train, _input_columns(train, held or train, labels.column, inputs), repeated)
    if not differing or far is None:
        return None
    most = sum(Counter(label for _, label in g).most_common(1)[0][1] for g in groups.values())
    first = differing[0]
    return Contradictions(
        rows=facts.hashed,
        contradictory=len(repeated),
        best_accuracy=most / facts.hashed,
        nearest_differing=far[0],
        values=far[1],
        example=(first[0][0], next(row for row, label in first if label != first[0][1])),
    )


def _far_from_others(split: Split, names: Sequence[str], repeated: Sequence[int]) -> tuple[float, int] | None:
    """In how many values repeated rows differ from the most similar row that is not identical (the median), and how many
    values a row has; for texts and tokens, the same in words. None if the rows were not kept, or all are identical."""
    kept = kept_rows(split, names)
    known = kept if isinstance(kept, range) else frozenset(kept)  # a range may be of millions of rows
    found = [t for t in repeated if t in known]
    left = table_of(split, names, evenly(found, MOST_REPEATED))
    right = table_of(split, names, evenly(kept, _most_rows(split, names)))
    if left is not None and right is not None:
        nearest = [_nearest(row, right) for row in left]
        values = int(left.shape[1])
    else:
        bags = bags_of(split, names, evenly(found, MOST_REPEATED_BAGS))
        others = bags_of(split, names, evenly(kept, MOST_BAGS))
        if bags is None or others is None:
            return None
        nearest = [_nearest_bag(bag, others) for bag in bags]
        values = int(np.median([bag.total() for bag in bags])) if bags else 0
    near = [n for n in nearest if n is not None]
    return (float(np.median(near)), values) if near else None


def _nearest(row: np.ndarray, others: np.ndarray) -> int | None:
    """The number of values in which a row differs from the most similar row that is not identical."""
    differing = (others != row).sum(axis=1)
    return int(differing[differing > 0].min()) if bool(differing.any()) else None


def _nearest_bag(bag: Counter[Any], others: Sequence[Counter[Any]]) -> int | None:
    """The same for words or tokens: how many of them are replaced, wherever they stand."""
    differing = (max((bag - other).total(), (other - bag).total()) for other in others if other != bag)
    return min(differing, default=None)


def bags_of(split: Split, names: Sequence[str], rows: Sequence[int]) -> list[Counter[Any]] | None:
    """The words of texts, the tokens of sequences and the values of numbers in these columns, counted for each row.

    None where a column is of none of these kinds or was not kept.
    """
    found = [Counter[Any]() for _ in rows]
    items = dict(zip(split.indices, split.items))
    for name in names:
        column = split.columns.get(name)
        for bag, row in zip(found, rows):
            try:
                value = column[row] if column is not None else items[row][name]
            except (KeyError, IndexError):
                return None
            parts = list(_parts(value))
            if not all(isinstance(part, (int, float, str)) for part in parts):
                return None
            bag.update((name, part) for part in parts)
    return found


def _parts(value: Any) -> Iterator[Any]:
    """Words of a text, or the single values of an array or of lists inside lists."""
    if isinstance(value, str):
        yield from value.split()
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part)
    else:
        yield from np.asarray(plain_values([value])[0]).reshape(-1).tolist()


def _scaling(train: Split, held: Split, label: str, names: Sequence[str], kind: str) -> Scaling | None:
    """How much the scales of the inputs differ."""
    sets = [(s, evenly(kept_rows(s, names), _most_rows(s, names))) for s in (train, held)]
    found = [(n, [values_of(s, n, rows) for s, rows in sets]) for n in names]
    tables = [(n, left, right) for n, (left, right) in found if left is not None and right is not None]
    trained, evaluated = (values_of(s, label, rows) for s, rows in sets)
    if trained is None or evaluated is None:
        return None
    return measure_scaling(tables, trained, evaluated, kind)


def _input_columns(train: Split, held: Split, label: str, inputs: Sequence[str]) -> list[str]:
    """The input columns that both sets have."""
    both = ({*train.names} & {*held.names}) - {label}
    return sorted([n for n in both if n in inputs] or both)


def kept_rows(split: Split, names: Sequence[str]) -> Sequence[int]:
    """The rows whose values in these columns were kept."""
    if names and all(n in split.columns for n in names):
        return range(min(len(split.columns[n]) for n in names))
    return split.indices


def _most_rows(split: Split, names: Sequence[str]) -> int:
    """How many rows may be used, given the size of one."""
    first = split.items[0] if split.items else {}
    size = sum(_size(first[n]) for n in names if n in first)
    return max(1, min(MOST_ROWS, MOST_VALUES // max(1, size)))


def _size(value: Any) -> int:
    """Number of values in a row; its lists may have different lengths."""
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return 1 if isinstance(value, (int, float)) else int(np.asarray(plain_values([value])[0]).size)


def values_of(split: Split, name: str, rows: Sequence[int]) -> np.ndarray | None:
    """(rows, values) of a numeric column whose rows have one shape; None for other columns or if it was not kept."""
    column = split.columns.get(name)
    if not rows or (column is not None and len(column) <= max(rows)):
        return None
    items = dict(zip(split.indices, split.items)) if column is None else {}
    try:
        table = (
            _few_of_array(column, rows)
            if isinstance(column, np.ndarray)
            else _few_of_rows(column[r] if column is not None else items[r][name] for r in rows)
        )
    except (KeyError, ValueError, TypeError):  # not kept, or rows of several shapes
        return None
    return table if table.dtype.kind in "iufb" and table.size else None


def _few_of_array(column: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """(rows, values) of an array; columns are selected before rows, because a row may be an image."""
    size = math.prod(column.shape[1:])
    if size <= MOST_COLUMNS:
        return np.asarray(column[np.asarray(rows)].reshape(len(rows), size))
    chosen = np.unravel_index(evenly(range(size), MOST_COLUMNS), column.shape[1:])
    return np.asarray(column[np.asarray(rows)[:, None], *chosen])


def _few_of_rows(values: Iterable[Any]) -> np.ndarray:
    """The same for separate rows.

    Raises:
        ValueError: The rows have different shapes.
    """
    shapes: set[tuple[int, ...]] = set()
    chosen: list[int] = []
    found: list[np.ndarray] = []
    for row in (np.asarray(plain_values([v])[0]) for v in values):
        chosen = chosen or evenly(range(row.size), MOST_COLUMNS)
        shapes.add(row.shape)
        if len(shapes) > 1:
            raise ValueError(f"rows must be of one shape; got {shapes}")
        found.append(row.reshape(-1)[chosen])
    return np.stack(found)


def table_of(split: Split, names: Sequence[str], rows: Sequence[int]) -> np.ndarray | None:
    """The columns side by side; None if one is not numeric."""
    parts = [values_of(split, n, rows) for n in names]
    found = [p.astype(np.float64) for p in parts if p is not None]
    return np.concatenate(found, axis=1) if found and len(found) == len(parts) else None
