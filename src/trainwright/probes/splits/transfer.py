"""Whether a probe that learns from the training rows takes the classes of the evaluation rows for others.

The probe is kernel ridge regression. Within a set each row is predicted from all others. Nothing is said unless both sets
can be learned by themselves: then the rows are not too few, and their labels belong to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainwright.probes.ridge import class_columns, kernel_of, ridge, standardise
from trainwright.probes.splits.two_sets import bags_of, kept_rows, values_of
from trainwright.stages import Split, SplitFacts, Transfer

# Rows of each set: two kernels with one inverse each take 0.2 s on one core.
MOST_ROWS = 800
FEWEST_TRAINED, FEWEST_EVALUATED = 100, 40
# Rows of each class in the evaluation set, for its number to be read off half of them.
FEWEST_A_CLASS, MOST_CLASSES = 8, 30
# Shares of a constant prediction's error that are saved in a set that is learned; of that, in one that is not understood
# beside it, and with its classes renumbered. Pictures of digits upside down keep 0.35.
LEARNED, LOST, RESTORED = 0.3, 0.5, 0.75
# Rows up to this size.
MOST_VALUES = 1_600
MOST_WORDS = 3_000


@dataclass(frozen=True)
class _Sets:
    """Rows of both sets, and their class numbers."""

    left: np.ndarray
    right: np.ndarray
    trained: np.ndarray
    evaluated: np.ndarray
    is_one_column: bool
    """Whether a row is the value of one column, with axes: neither words, nor several columns side by side."""


def transfer_of(
    train: Split, trained: SplitFacts, held: Split | None, evaluated: SplitFacts | None, inputs: Sequence[str]
) -> Transfer | None:
    """How the evaluation's classes are numbered by a probe of the training rows; None if as in training, or not known."""
    if held is None or evaluated is None or trained.labels is None or evaluated.labels is None:
        return None
    if not trained.labels.kind == evaluated.labels.kind == "class":
        return None
    sets = _read(train, held, trained.labels.column, inputs)
    return None if sets is None else _measured(sets)


def _measured(sets: _Sets) -> Transfer | None:
    if not _comparable(sets):
        return None
    best = max((_Probe(sets, width) for width in _widths(sets)), key=lambda p: p.training_gain)
    if best.training_gain < LEARNED:
        return None
    scores = best.asked(sets.right)
    gain = _gain(scores, sets.evaluated, sets)
    if gain > LOST * best.training_gain:
        return None
    turned = _Sets(sets.right, sets.right, sets.evaluated, sets.evaluated, sets.is_one_column)
    within = _Probe(turned, best.width).training_gain
    own = min(best.training_gain, within)
    if within < LEARNED or gain > LOST * own:
        return None
    pairs, renumbered_gain = _renumbered(scores, sets)
    if not pairs or renumbered_gain < RESTORED * own:
        return None
    return Transfer(rows=len(sets.right), gain=gain, renumbered=pairs, renumbered_gain=renumbered_gain)


# Reading -------------------------------------------------------------------------------------------------------------


def _read(train: Split, held: Split, label: str, inputs: Sequence[str]) -> _Sets | None:
    """The rows of both sets as tables with the same columns: numbers, or counts of words."""
    names = [n for n in train.names if n in held.names and n != label]
    names = [n for n in names if n in inputs] or names
    rows = [_rows(s, names) for s in (train, held)]
    targets = [values_of(s, label, r) if r else None for s, r in zip((train, held), rows)]
    if not names or any(t is None or t.shape[1] != 1 for t in targets):
        return None
    tables = _numbers((train, held), names, rows)
    shape: tuple[int, ...] = ()
    if tables is not None and len(names) == 1:
        shape = np.shape(train.columns[names[0]][0] if names[0] in train.columns else train.items[0][names[0]])
    tables = _words((train, held), names, rows) if tables is None else tables
    if tables is None:
        return None
    # A copy of a row among the others would tell its label.
    once = [np.unique(t, axis=0, return_index=True)[1] for t in tables]
    left, right = (t[r] for t, r in zip(tables, once))
    first, second = (np.asarray(t, dtype=np.float64)[r, 0] for t, r in zip(targets, once) if t is not None)
    return _Sets(left, right, first, second, bool(shape and np.prod(shape) == left.shape[1]))


def _rows(split: Split, names: Sequence[str]) -> list[int]:
    """Some of the rows whose values were kept, at random: sets are often in some order."""
    kept = kept_rows(split, names)
    order = np.random.default_rng(0).permutation(len(kept))[:MOST_ROWS]
    return [kept[i] for i in order]


def _numbers(
    sets: tuple[Split, Split], names: Sequence[str], rows: Sequence[list[int]]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Both sets' columns side by side; None for words and tokens, and for rows of several sizes."""
    found = [[values_of(s, n, r) for n in names] for s, r in zip(sets, rows)]
    tables = [[p for p in parts if p is not None] for parts in found]
    if any(len(parts) != len(names) for parts in tables):
        return None
    if [p.shape[1] for p in tables[0]] != [p.shape[1] for p in tables[1]] or any(map(_are_tokens, tables[0])):
        return None
    left, right = (np.concatenate([p.astype(np.float64) for p in parts], axis=1) for parts in tables)
    finite = np.isfinite(left).all() and np.isfinite(right).all()
    return (left, right) if finite and left.shape[1] <= MOST_VALUES else None


def _are_tokens(table: np.ndarray) -> bool:
    """Whether rows of whole numbers may be words of a vocabulary, or levels of gray."""
    return table.dtype.kind in "iu" and table.shape[1] > 1 and int(table.max(initial=0)) > 30


def _words(
    sets: tuple[Split, Split], names: Sequence[str], rows: Sequence[list[int]]
) -> tuple[np.ndarray, np.ndarray] | None:
    """(rows, words): which of the training rows' frequent words or tokens each row of both sets has."""
    bags = [b for s, r in zip(sets, rows) if (b := bags_of(s, names, r)) is not None]
    if len(bags) != len(sets):
        return None
    seen: dict[object, int] = {}
    for bag in bags[0]:
        for word in bag:
            seen[word] = seen.get(word, 0) + 1
    chosen = sorted((w for w, n in seen.items() if n > 1), key=lambda w: -seen[w])[:MOST_WORDS]
    places = {word: i for i, word in enumerate(chosen)}
    tables = []
    for part in bags:
        table = np.zeros((len(part), len(places)))
        for row, bag in enumerate(part):
            for word in bag:
                if (place := places.get(word)) is not None:
                    table[row, place] = 1.0
        tables.append(table)
    return (tables[0], tables[1]) if places else None


def _comparable(sets: _Sets) -> bool:
    """Whether there are enough rows, and evaluation rows have no classes of their own."""
    if len(sets.trained) < FEWEST_TRAINED or len(sets.evaluated) < FEWEST_EVALUATED:
        return False
    left, right = (dict(zip(*np.unique(t, return_counts=True))) for t in (sets.trained, sets.evaluated))
    if left.keys() != right.keys() or not 2 <= len(left) <= MOST_CLASSES:
        return False
    return bool(min(*left.values(), *right.values()) >= FEWEST_A_CLASS)


# The probe -----------------------------------------------------------------------------------------------------------


class _Probe:
    """A probe of the training rows.

    Args:
        width: of its Gaussian kernel, in units of the number of columns; 0: it is linear.
    """

    def __init__(self, sets: _Sets, width: float) -> None:
        self.sets, self.width = sets, width
        self._scale = sets.left.mean(axis=0), sets.left.std(axis=0)
        self._table = standardise(sets.left, *self._scale)
        targets = class_columns(sets.trained, np.unique(sets.trained))  # rare and frequent ones weigh the same
        self._weights, missed = ridge(kernel_of(self._table, self._table, width), targets)
        self.training_gain = _gain(targets - missed, sets.trained, sets)

    def asked(self, rows: np.ndarray) -> np.ndarray:
        """(rows, classes): its scores for rows."""
        return np.asarray(kernel_of(standardise(rows, *self._scale), self._table, self.width) @ self._weights)


def _widths(sets: _Sets) -> tuple[float, ...]:
    return (0.0,) if not sets.is_one_column and sets.left.shape[1] > MOST_VALUES // 4 else (0.0, 1.0)


def _gain(scores: np.ndarray, truth: np.ndarray, sets: _Sets) -> float:
    """The share of a constant answer's error that scores save."""
    counts = np.unique(truth, return_counts=True)[1]
    wrong = float((np.unique(sets.trained)[scores.argmax(axis=1)] != truth).astype(np.float64).mean())
    return 1 - wrong / max(1 - float(counts.max() / counts.sum()), 1e-12)


# What would have to change -------------------------------------------------------------------------------------------


def _renumbered(scores: np.ndarray, sets: _Sets) -> tuple[tuple[tuple[int, int], ...], float]:
    """The classes that would have to be exchanged, and the gain on rows that this was not read off."""
    classes = np.unique(sets.trained)
    guesses, truth = scores.argmax(axis=1), np.searchsorted(classes, sets.evaluated)
    half = np.arange(len(truth)) % 2 == 0
    found = [_numbers_of(guesses[part], truth[part], len(classes)) for part in (half, ~half)]
    if found[0] is None or found[1] is None or not np.array_equal(found[0], found[1]):
        return (), 0.0
    right = float((found[0][guesses] == truth).mean())
    constant = float(np.bincount(truth).max() / len(truth))
    pairs = [(int(classes[i]), int(classes[n])) for i, n in enumerate(found[0]) if i != n]
    return tuple(pairs), (right - constant) / max(1 - constant, 1e-12)


def _numbers_of(guesses: np.ndarray, truth: np.ndarray, classes: int) -> np.ndarray | None:
    """For each class in training its number in evaluation; None if two classes would have the same one."""
    counts = np.zeros((classes, classes))
    np.add.at(counts, (guesses, truth), 1)
    numbers = counts.argmax(axis=1)
    return numbers if len(set(numbers.tolist())) == classes else None
