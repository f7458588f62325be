"""Whether a user's dataset returns distinct rows for distinct indices, or repeats some and never returns others."""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from trainwright.core import Place
from trainwright.probes.splits.census import digest
from trainwright.seams.source.places import is_users, show
from trainwright.stages import Repetition, Split, SplitFacts

# Nobody nests datasets this deep; a dataset that contains itself or has every attribute would recurse forever.
MOST_WRAPPED = 16


def repetition_of(data: Any, split: Split, facts: SplitFacts) -> Repetition | None:
    """How the dataset repeats the rows that were read; None if it does not, or if no user code reads rows by
    index."""
    if len(facts.hashes) == facts.hashed or (method := _item_method(data)) is None:
        return None
    rows = _rows(split, facts)
    every, share = _most_frequent_distance(rows)
    expression, held = max(_held(*method), key=lambda pair: pair[1], default=("", 0))
    if not every or not held:
        return None
    code = method[1].__code__
    return Repetition(
        read=len(rows),
        different=len(set(rows)),
        every=every,
        share=share,
        held=held,
        expression=expression,
        where=Place(show(code.co_filename), code.co_firstlineno),
    )


def _rows(split: Split, facts: SplitFacts) -> Sequence[Hashable]:
    """The identity of each row: the hash of its inputs, with that of the label if it was kept."""
    label = facts.labels.column if facts.labels else ""
    labels = split.digests.get(label) or [digest(v) for v in split.columns.get(label, ())[: facts.hashed]]
    return list(zip(facts.row_hashes, labels)) if len(labels) >= facts.hashed else facts.row_hashes


def _most_frequent_distance(rows: Sequence[Hashable]) -> tuple[int, float]:
    """The distance at which rows most often repeat, and the share of rows that do; distance 0: no row repeats."""
    last: dict[Hashable, int] = {}
    counts: Counter[int] = Counter()
    for number, row in enumerate(rows):
        if row in last:
            counts[number - last[row]] += 1
        last[row] = number
    if not counts:
        return 0, 0.0
    ((every, count),) = counts.most_common(1)
    return every, count / (len(rows) - every)


def _item_method(data: Any) -> tuple[Any, FunctionType] | None:
    """The dataset, or one nested in it, whose items the user's code reads, and that method."""
    for _ in range(MOST_WRAPPED):
        function = getattr(type(data), "__getitem__", None)
        if isinstance(function, FunctionType) and is_users(function.__code__.co_filename):
            return data, function
        if (data := getattr(data, "dataset", None)) is None:
            break
    return None


def _held(owner: Any, function: FunctionType) -> Iterator[tuple[str, int]]:
    """The arrays and lists that the item method names, otherwise all attributes: expression and number of rows."""
    asked = list(_named(function.__code__))
    attributes = {n: v for n, v in getattr(owner, "__dict__", {}).items() if _count(v)}
    named = {n: v for n, v in attributes.items() if ("LOAD_ATTR", n) in asked}
    used = {n: v for n, v in function.__globals__.items() if ("LOAD_GLOBAL", n) in asked and _count(v)}
    yield from ((f"self.{n}", _count(v)) for n, v in (named or ({} if used else attributes)).items())
    yield from ((n, _count(v)) for n, v in used.items())


def _named(code: CodeType) -> Iterator[tuple[str, str]]:
    """The names that code, including nested code, reads: the operation (for an attribute or a global) and the name."""
    yield from ((i.opname, i.argval) for i in dis.get_instructions(code) if i.opname in ("LOAD_ATTR", "LOAD_GLOBAL"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named(constant)


def _count(value: Any) -> int:
    """The number of rows of an array, frame or list; 0 for anything else."""
    if isinstance(value, (list, tuple)) or hasattr(value, "column_names"):
        return len(value)
    shape = getattr(value, "shape", None)
    return int(shape[0] or 0) if isinstance(shape, Sequence) and shape else 0
