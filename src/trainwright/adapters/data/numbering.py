"""The numbers that stand for names in the two sets: categories and words that the script numbered before training.

A column of numbers is matched with the names in the script by value: each name has one number throughout the rows, and, for
categories, each number one name. What was matched by chance or in another order does not do that.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import objects_in_scope
from trainwright.probes.splits.two_sets import values_of
from trainwright.stages import Renumbered, Split

# Two categories could be exchanged by chance of few rows; and identifiers of single rows are no categories.
FEWEST_NAMES, FEWEST_ROWS, FEWEST_A_NAME = 3, 20, 2.0
MOST_ROWS, MOST_TABLE_ROWS = 20_000, 200_000
MOST_FEATURES = 512
# Texts are compared up to this many rows; fewer different words than this could agree by chance.
MOST_TEXTS, FEWEST_WORDS = 400, 30
# Words that another function splits in another way, or that are cut off in the middle, are numbered otherwise.
AGREEING = 0.98
# Rows of other tables have the same name under a label by chance, of three names in a third of the cases.
SAME_ROWS = 0.5
# The names with one number in training and another in the evaluation set, as a share of those in both.
DIFFERING = 0.1

# How scripts split a text that they number themselves.
_SPLITS: tuple[Callable[[str], list[str]], ...] = (
    str.split,
    lambda text: text.lower().split(),
    lambda text: re.findall(r"\w+", text),
    lambda text: re.findall(r"\w+", text.lower()),
    lambda text: re.findall(r"\w+|[^\w\s]", text.lower()),
    list,
)


_Coding = tuple[str, dict[Any, int]]
"""The table that holds the names, and the number of each name."""


@dataclass(frozen=True)
class _Names:
    """A text for each row of a table in the script."""

    expression: str
    texts: Sequence[str]


def find_renumbered(train: Split, held: Split | None, scope: Mapping[str, Any]) -> Renumbered | None:
    """The first column whose names have other numbers in the evaluation set than in training; None if there is none."""
    if held is None:
        return _in_tables(train, scope)
    names = list(_names(scope))
    if not names or min(train.read, held.read) < FEWEST_ROWS:
        return None
    for column in (c for c in train.columns if c in held.columns):
        left, right = (_codings(s, column, names) for s in (train, held))
        for place, coded in left.items():
            for one, other in itertools.product(coded, right.get(place, ())):
                if (found := _compared(column, place, one, other)) is not None:
                    return found
    return None


def _in_tables(train: Split, scope: Mapping[str, Any]) -> Renumbered | None:
    """The same for a training whose evaluation rows are not known: a column of numbers beside one of names, in the table
    that the training rows came from and in another with the same columns."""
    tables = [(one.expression, f) for one in objects_in_scope(scope) if (f := _frame(one.value)) is not None]
    for (left, table), (right, other) in itertools.permutations(tables, 2):
        with contextlib.suppress(Exception):  # an object that only looks like a frame
            if (
                len(table) != train.rows
                or not FEWEST_ROWS <= len(table) <= MOST_TABLE_ROWS
                or list(table) != list(other)
            ):
                continue
            for column, name in itertools.product(_used(table, train), table.columns):
                if column == name or _are_same_rows(table[name], other[name]):
                    continue
                coding = _of_categories(table[name].tolist(), table[column].to_numpy())
                there = _of_categories(other[name].tolist(), other[column].to_numpy(), 0.0) if coding else None
                if coding and there:
                    ones = (f"{left}[{name!r}]", coding), (f"{right}[{name!r}]", there)
                    if (found := _compared(str(column), 0, *ones, table=right)) is not None:
                        return found
    return None


def _frame(value: Any) -> Any:
    """A table with named columns and an index; None for anything else."""
    return value if all(hasattr(value, n) for n in ("columns", "index", "loc")) else None


def _are_same_rows(left: Any, right: Any) -> bool:
    """Whether two columns have the same names under the same labels: a table before and after it was renumbered."""
    shared = left.index.intersection(right.index) if left.index.is_unique and right.index.is_unique else left.index[:0]
    return len(shared) > 0 and bool((left.loc[shared].to_numpy() == right.loc[shared].to_numpy()).mean() > SAME_ROWS)


def _used(table: Any, train: Split) -> Iterator[Any]:
    """A table's columns of whole numbers that are a column of the training rows, value by value."""
    rows = len(table)
    read = [values for c in train.columns if (values := values_of(train, c, range(rows))) is not None]
    for column in table.columns:
        numbers = table[column].to_numpy()
        if numbers.dtype.kind in "iu" and any(
            len(v) == rows and bool((v == numbers[:, None]).all(axis=0).any()) for v in read
        ):
            yield column


def _compared(column: str, place: Any, left: _Coding, right: _Coding, *, table: str = "") -> Renumbered | None:
    """What differs between the numbers of two sets; None if too little does, or too few names are in both."""
    coding, other = left[1], right[1]
    shared = [n for n in coding if n in other]
    differing = [n for n in shared if coding[n] != other[n]]
    if len(shared) < FEWEST_NAMES or len(differing) < max(2, DIFFERING * len(shared)):
        return None
    return Renumbered(
        column=column,
        feature=place if isinstance(place, int) else None,
        names=len(shared),
        differing=len(differing),
        example=str(differing[0]),
        table=table,
        in_training=coding[differing[0]],
        in_evaluation=other[differing[0]],
        sources=(left[0], right[0]),
    )


def _codings(split: Split, column: str, names: Sequence[_Names]) -> dict[Any, list[_Coding]]:
    """Where names are numbered in a column: by feature (an index), or by how texts are split."""
    rows = min(split.read, MOST_ROWS)
    fitting = [n for n in names if len(n.texts) == split.rows]
    if not fitting or not rows:
        return {}
    found: dict[Any, list[_Coding]] = {}
    table = values_of(split, column, range(rows))
    if table is not None and table.shape[1] <= MOST_FEATURES:
        whole = [j for j in range(table.shape[1]) if bool((table[:, j] == np.round(table[:, j])).all())]
        for j in whole:
            for one in fitting:
                if (coding := _of_categories(one.texts[:rows], table[:, j])) is not None:
                    found.setdefault(j, []).append((one.expression, coding))
    for one in fitting:
        for number, parts in enumerate(_SPLITS):
            if (words := _of_words(one.texts, split.columns[column], parts)) is not None:
                found.setdefault(f"split {number}", []).append((one.expression, words))
    return found


def _of_categories(names: Sequence[Any], numbers: np.ndarray, rows: float = FEWEST_A_NAME) -> dict[Any, int] | None:
    """The number of each name, if each name has one and each number stands for one.

    Args:
        rows: the fewest rows for each name, on average.
    """
    pairs = set(zip(names, numbers.tolist()))
    count = len({name for name, _ in pairs})
    if not FEWEST_NAMES <= count == len(pairs) == len({n for _, n in pairs}):
        return None
    return {name: int(n) for name, n in pairs} if len(names) >= rows * count else None


def _of_words(texts: Sequence[str], rows: Sequence[Any], parts: Callable[[str], list[str]]) -> dict[str, int] | None:
    """The number of each word, if words have one number each, in the order in which they stand in the texts."""
    seen: dict[str, Counter[int]] = {}
    for text, row in list(zip(texts, rows))[:MOST_TEXTS]:
        numbers = np.asarray(row).reshape(-1)
        if numbers.dtype.kind not in "iu" or len(numbers) < 2:
            return None
        used = np.flatnonzero(numbers)
        for word, number in zip(parts(text), numbers[used[0] : used[-1] + 1].tolist() if len(used) else ()):
            seen.setdefault(word, Counter())[number] += 1
    several = {word: counts for word, counts in seen.items() if counts.total() > 1}
    total = sum(c.total() for c in several.values())
    agreeing = sum(c.most_common(1)[0][1] for c in several.values())
    coding = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
    if len(several) < FEWEST_WORDS or agreeing < AGREEING * total or len(set(coding.values())) < FEWEST_WORDS:
        return None
    return coding


def _names(scope: Mapping[str, Any]) -> Iterator[_Names]:
    """Texts of each row: columns of frames, lists and arrays; and those of a frame that another one's rows came from."""
    frames: list[tuple[str, Any]] = []
    for one in objects_in_scope(scope):
        if _frame(one.value) is not None:
            frames.append((one.expression, one.value))
        elif (texts := _texts(one.value)) is not None:
            yield _Names(one.expression, texts)
    for expression, frame in frames:
        with contextlib.suppress(Exception):  # an object that only looks like a frame
            yield from _columns(expression, frame, frames)


def _columns(expression: str, frame: Any, frames: Sequence[tuple[str, Any]]) -> Iterator[_Names]:
    """A frame's columns of texts: of all its rows, and of the rows that another frame was made of."""
    parts = [(name, f) for name, f in frames if len(f) < len(frame) and f.index.isin(frame.index).all()]
    parts = parts if frame.index.is_unique else []
    for column in frame.columns:
        named = f"{expression}[{column!r}]"
        if (texts := _texts(frame[column])) is not None:
            yield _Names(named, texts)
            for name, part in parts:
                if (taken := _texts(frame.loc[part.index, column])) is not None:
                    yield _Names(f"{named} of the rows of {name}", taken)


def _texts(value: Any) -> list[str] | None:
    """A list, array or column of texts; None for anything else."""
    with contextlib.suppress(Exception):  # an object that only looks like a column
        if not isinstance(value, (list, tuple, np.ndarray)) and not (
            hasattr(value, "to_numpy") and hasattr(value, "iloc")
        ):
            return None
        if len(value) < FEWEST_ROWS or len(getattr(value, "shape", (0,))) != 1:
            return None
        first = value.iloc[0] if hasattr(value, "iloc") else value[0]
        return [v if isinstance(v, str) else "" for v in value] if isinstance(first, str) else None
    return None
