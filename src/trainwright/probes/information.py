"""How much of the label a probe can read from an array of rows: the same question at each point of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainwright.core import Place
from trainwright.probes.labels.alignment import control
from trainwright.probes.labels.inputs import Inputs, kernels, read_as_tokens, read_inputs
from trainwright.probes.ridge import accuracies, best_of, class_columns, distances, products
from trainwright.stages import Information, Station

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
class Result:
    """The rows of one result of the forward pass, and what made it."""

    name: str
    """A module's path, or an operation."""
    module: str
    """The path of the module in which it was made."""
    kind: str
    """The module's class; empty for an operation."""
    where: Place | None
    """The user's line."""
    values: np.ndarray | None
    """(rows, …) as kept; None if it was passed over."""


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
        return Targets(class_columns(table[:, 0], known), True)
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


def read_given(given: Mapping[str, Sequence[np.ndarray]], targets: Targets) -> Information | None:
    """What the model's inputs tell of the targets, without any further station; None if they cannot be read.

    Args:
        given: the rows of each input, by its name.
    """
    part = {name: list(rows) for name, rows in given.items()}
    found = [i for i in (read_inputs(part, ()), read_as_tokens(part, ())) if i is not None]
    if not found:
        return None
    read = [_read("the model's input", kernels(inputs), targets) for inputs in found]
    return Information(
        rows=len(targets.columns),
        power=max(_power(inputs) for inputs in found),
        structure=max(control(inputs) for inputs in found),
        single=all(inputs.single for inputs in found),
        given=max(read, key=lambda station: station.score),
        stations=(),
    )


def read_station(name: str, table: np.ndarray, targets: Targets) -> Station:
    """What one result of the forward pass tells.

    Args:
        table: (rows, features), as `sketch` makes it.
    """
    return _read(name, _station_kernels(table), targets)


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
    distance = distances(inner)
    yield np.exp(-distance / np.median(distance[distance > 0])) if (distance > 0).any() else inner


def _read(name: str, found: Iterable[np.ndarray], targets: Targets) -> Station:
    columns = targets.columns
    random = np.random.default_rng(0)
    orders = [random.permutation(len(columns)) for _ in range(PERMUTATIONS)]
    best = best_of(found, columns, orders, PLAIN)
    if best is None:
        return Station(name=name, score=0.0, share=0.0)
    score, predicted = best
    if targets.classes:
        right, permuted = accuracies(predicted, columns, orders)
        share = max(0.0, (right - permuted) / max(1 - permuted, 1e-9))
        return Station(name=name, score=score, share=share, accuracy=right, permuted=permuted)
    own = predicted[:, : columns.shape[1]]
    fits = (own * columns).mean(axis=0) / np.maximum(own.std(axis=0) * columns.std(axis=0), 1e-12)
    return Station(name=name, score=score, share=float(np.clip(fits, 0.0, 1.0).mean()))


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
        scores.append(_read("", kernels(inputs), targets).score if targets is not None else 0.0)
    return float(np.median(scores))
