"""How much of the label a probe can read from an array of rows: the same question at each point of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainwright.probes.labels.alignment import control
from trainwright.probes.labels.inputs import Inputs, read_as_tokens, read_inputs
from trainwright.probes.labels.ridge import accuracies, kernels, leave_one_out, products, score_of

# One inverse of this size takes some 10 ms.
MOST_ROWS = 512
FEWEST_ROWS = 64
PERMUTATIONS = 24
# With fewer rows per class or outside the largest one, a probe learns nothing of anything.
FEWEST_A_CLASS = 6
FEWEST_OUTSIDE = 24
# Targets with more columns are judged by their first ones.
MOST_COLUMNS = 16
# Wide results are hashed into so many sums with random signs, which keeps their inner products (count sketch, Charikar
# et al. 2002).
SKETCH = 512
# Differences that are smaller than this share of a result's size are rounding.
ROUNDING = 1e-5
# A search for the best kernel ends here.
PLAIN = 20.0
PLANTED_SHARE = 0.1
OBEYING = 0.5
PLANTS = 3


@dataclass(frozen=True)
class Targets:
    """Centered columns that a probe predicts."""

    columns: np.ndarray
    """(rows, columns)"""
    classes: bool


@dataclass(frozen=True)
class Reading:
    """What a probe reads; see `Station`."""

    score: float
    share: float
    accuracy: float | None
    permuted: float | None


def targets_for(values: np.ndarray, *, classes: bool) -> Targets | None:
    """The targets of a loss as columns to predict; None if they hardly vary.

    Args:
        values: (rows) or (rows, columns).
        classes: whether whole numbers in one column are classes.
    """
    table = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    if table.shape[1] == 1 and classes:
        known, counts = np.unique(table, return_counts=True)
        outside = len(table) - counts.max()
        if len(known) < 2 or len(table) / len(known) < FEWEST_A_CLASS or outside < FEWEST_OUTSIDE:
            return None
        one_hot = (table == known[None]).astype(np.float64)
        share = one_hot.mean(axis=0)
        return Targets((one_hot - share) / np.sqrt(share), True)
    ranks = np.argsort(np.argsort(table, axis=0, kind="stable"), axis=0).astype(np.float64)
    columns = ranks if table.shape[1] == 1 else table
    columns = columns[:, columns.std(axis=0) > 0][:, :MOST_COLUMNS]
    if not columns.shape[1]:
        return None
    return Targets((columns - columns.mean(axis=0)) / columns.std(axis=0), False)


def sketch(values: np.ndarray) -> np.ndarray:
    """(rows, features): a result of the forward pass, shortened where it is wide, and pooled over its positions."""
    rows = len(values)
    values = np.nan_to_num(np.asarray(values, dtype=np.float32), posinf=0.0, neginf=0.0)
    parts = [_shortened(values.reshape(rows, -1))]
    if values.ndim == 3:
        parts += [values.mean(axis=1), values.max(axis=1)]
    elif values.ndim > 3:
        inner = tuple(range(2, values.ndim))
        parts += [values.mean(axis=inner), values.max(axis=inner)]
        parts += [values.mean(axis=tuple(range(1, values.ndim - 1)))]
    return np.concatenate([_shortened(p) for p in parts], axis=1)


def _shortened(table: np.ndarray) -> np.ndarray:
    if table.shape[1] <= SKETCH:
        return table
    random = np.random.default_rng(0)
    width = -(-table.shape[1] // SKETCH) * SKETCH
    padded = np.zeros((len(table), width), dtype=np.float32)
    padded[:, : table.shape[1]] = table * random.choice([-1.0, 1.0], table.shape[1])
    return np.asarray(padded[:, random.permutation(width)].reshape(len(table), -1, SKETCH).sum(axis=1))


@dataclass(frozen=True)
class Given:
    """What a model's inputs tell."""

    reading: Reading
    power: float
    """The score of planted labels."""
    structure: float
    """The score of a label made from half of the features, as read from the other half; noise has none."""
    single: bool
    """Whether each row is one text, picture or vector, not a pair or a window of one series."""


def read_given(given: Mapping[str, Sequence[np.ndarray]], targets: Targets) -> Given | None:
    """What the model's inputs tell of the targets; None if they cannot be read.

    Args:
        given: the rows of each input, by its name.
    """
    part = {name: list(rows) for name, rows in given.items()}
    found = [i for i in (read_inputs(part, ()), read_as_tokens(part, ())) if i is not None]
    if not found:
        return None
    read = [_read(kernels(inputs), targets) for inputs in found]
    return Given(
        max(read, key=lambda r: r.score),
        max(_power(inputs) for inputs in found),
        max(control(inputs) for inputs in found),
        all(inputs.single for inputs in found),
    )


def read_station(table: np.ndarray, targets: Targets) -> Reading:
    """What one result of the forward pass tells.

    Args:
        table: (rows, features), as `sketch` makes it.
    """
    return _read(_station_kernels(table), targets)


def _station_kernels(table: np.ndarray) -> Iterator[np.ndarray]:
    table = table.astype(np.float64)
    size = np.abs(table).max(axis=0)
    deviation = table.std(axis=0)
    lives = deviation > ROUNDING * np.maximum(size, ROUNDING * (size.max() if size.size else 0.0))
    if not lives.any():
        return
    table = (table[:, lives] - table[:, lives].mean(axis=0)) / deviation[lives]
    inner = products(table) / table.shape[1]
    yield inner
    squares = np.diag(inner)
    distance = np.maximum(squares[:, None] + squares[None] - 2 * inner, 0.0)
    yield np.exp(-distance / np.median(distance[distance > 0])) if (distance > 0).any() else inner


def _read(found: Iterable[np.ndarray], targets: Targets) -> Reading:
    columns, width = targets.columns, targets.columns.shape[1]
    random = np.random.default_rng(0)
    orders = [random.permutation(len(columns)) for _ in range(PERMUTATIONS)]
    every = np.concatenate([columns, *(columns[o] for o in orders)], axis=1)
    best: Reading | None = None
    for kernel in found:
        predicted = leave_one_out(kernel, every)
        score = score_of(predicted, columns, orders)
        if best is None or score > best.score:
            best = _reading(score, predicted[:, :width], predicted, targets, orders)
        if score > PLAIN:
            break
    return best or Reading(0.0, 0.0, None, None)


def _reading(
    score: float, own: np.ndarray, predicted: np.ndarray, targets: Targets, orders: list[np.ndarray]
) -> Reading:
    if targets.classes:
        right, permuted = accuracies(predicted, targets.columns, orders)
        return Reading(score, max(0.0, (right - permuted) / max(1 - permuted, 1e-9)), right, permuted)
    spread = own.std(axis=0) * targets.columns.std(axis=0)
    fits = (own * targets.columns).mean(axis=0) / np.maximum(spread, 1e-12)
    return Reading(score, float(np.clip(fits, 0.0, 1.0).mean()), None, None)


def _power(inputs: Inputs) -> float:
    """The score of labels that a tenth of the features make, half of which obey; the median over several tenths."""
    table, scores = inputs.features.astype(np.float64), []
    if table.shape[1] < 2:
        return PLAIN
    for seed in range(PLANTS):
        random = np.random.default_rng(seed)
        chosen = random.choice(table.shape[1], max(1, int(PLANTED_SHARE * table.shape[1])), replace=False)
        made = table[:, chosen] @ random.choice([-1.0, 1.0], len(chosen))
        labels = made > np.median(made)
        labels = np.where(random.random(len(labels)) < OBEYING, labels, random.random(len(labels)) < 0.5)
        targets = targets_for(labels.astype(int), classes=True)
        scores.append(_read(kernels(inputs), targets).score if targets is not None else 0.0)
    return float(np.median(scores))
