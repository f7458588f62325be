"""Whether labels belong to their inputs: does a small probe learn them better than permutations of them?

The probe is kernel ridge regression, judged by its leave-one-out predictions. One matrix inverse serves the labels and
all their permutations, so a set takes about a second. A control shows whether the probe could learn anything at all: a
label made from one half of the features is predicted from the other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.probes.labels.inputs import Inputs, kernels, read_as_tokens, read_inputs
from trainwright.probes.ridge import accuracies, best_of, class_columns, products, score_of, unit
from trainwright.stages import Alignment

# Rows of the first attempt, and of the second one if the first finds nothing: about 0.5 s and 2 s on one core.
FIRST_ROWS = 1_200
MOST_ROWS = 1_600
FEWEST_ROWS = 250
# With fewer rows per class, or fewer rows outside the largest class, noise can hide a real relation.
FEWEST_A_CLASS = 12
FEWEST_OUTSIDE = 60
PERMUTATIONS = 40
# The search ends at this score above the permutations' mean, in their standard deviations.
PLAINLY_LEARNT = 5.0
# How many random halves of the features the control tries.
CONTROLS = 3
# In the control, only rows of neighboring lengths are exchanged, so length alone carries no information.
LENGTH_BLOCK = 16


def measure_alignment(
    columns: Mapping[str, Sequence[Any]], label: str, kind: str, accepts: Sequence[str] = ()
) -> Alignment | None:
    """Return how well the labels fit the inputs; None if this kind of probe does not apply.

    Args:
        columns: the rows, by column; sequences of equal length.
        kind: `class` or `real`, as in `LabelFacts`.
        accepts: the model's argument names; if any column has such a name, all others are left out.
    """
    labels = _labels(columns.get(label, ()), kind)
    if labels is None or len(labels) < FEWEST_ROWS:
        return None
    found = None
    for most in (FIRST_ROWS, MOST_ROWS):
        rows = _chosen(len(labels), most)
        part = {n: [c[i] for i in rows] for n, c in columns.items() if n != label and len(c) == len(labels)}
        inputs = read_inputs(part, accepts)
        if inputs is None or not _enough(labels[rows], kind):
            return found
        found = _measure(inputs, labels[rows], kind)
        tokens = (
            read_as_tokens(part, accepts)
            if found and found.score <= PLAINLY_LEARNT and inputs.kind == "numbers"
            else None
        )
        if tokens is not None:
            found = _measure(tokens, labels[rows], kind)
        if found is None or found.score > PLAINLY_LEARNT or len(labels) <= most:
            return found
    return found


def _labels(values: Sequence[Any], kind: str) -> np.ndarray | None:
    try:
        array = np.asarray([np.asarray(v).reshape(-1) for v in values])
    except (ValueError, TypeError):
        return None
    if array.dtype.kind not in "iufb" or array.ndim != 2 or array.shape[1] != 1 or kind not in ("class", "real"):
        return None
    flat = array[:, 0]
    return flat if kind == "class" or bool(np.isfinite(flat).all()) else None


def _enough(labels: np.ndarray, kind: str) -> bool:
    if kind == "real":
        return bool(labels.std() > 0)
    counts = np.unique(labels, return_counts=True)[1]
    return (
        len(counts) > 1 and len(labels) / len(counts) >= FEWEST_A_CLASS and len(labels) - counts.max() >= FEWEST_OUTSIDE
    )


def _chosen(rows: int, most: int) -> np.ndarray:
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def targets_of(labels: np.ndarray, kind: str) -> np.ndarray:
    """(rows, columns), centered: one column per class, or ranks."""
    if kind == "real":
        ranks: np.ndarray = np.argsort(np.argsort(labels)).astype(np.float64)
        centred: np.ndarray = (ranks - ranks.mean()) / ranks.std()
        return centred[:, None]
    return class_columns(labels, np.unique(labels))


def _measure(inputs: Inputs, labels: np.ndarray, kind: str) -> Alignment | None:
    targets = targets_of(labels, kind)
    random = np.random.default_rng(0)
    orders = [random.permutation(len(labels)) for _ in range(PERMUTATIONS)]
    found = best_of(kernels(inputs), targets, orders, PLAINLY_LEARNT)
    assert found is not None
    best, predicted = found
    hits = accuracies(predicted, targets, orders)
    words_alone = best <= PLAINLY_LEARNT and inputs.kind != "numbers"
    return Alignment(
        rows=len(labels),
        score=best,
        control_score=control(inputs) if best <= PLAINLY_LEARNT else float("nan"),
        accuracy=hits[0] if kind == "class" else None,
        permuted_accuracy=hits[1] if kind == "class" else None,
        single=inputs.single,
        classes=targets.shape[1] if kind == "class" else None,
        likeness=_likeness(inputs) if words_alone else None,
        pair_control_score=_pair_control(inputs) if words_alone else None,
        inputs=inputs.kind,
    )


def _likeness(inputs: Inputs) -> float:
    """The similarity (cosine of weighted words) of a row to its nearest neighbor, the median over the rows."""
    similar = products(unit(inputs.features[:FIRST_ROWS]))
    np.fill_diagonal(similar, 0.0)
    return float(np.median(similar.max(axis=1)))


def _pair_control(inputs: Inputs) -> float:
    """The score of labels that only pairs of words determine: whether two sums over the words agree."""
    table = unit(inputs.features[:FIRST_ROWS])
    kernel, scores = products(table) ** 2, []
    for seed in range(CONTROLS):
        random = np.random.default_rng(seed)
        half = np.asarray(random.random(table.shape[1]) < 0.5)
        sums = [table[:, part] @ random.choice([-1.0, 1.0], int(part.sum())) for part in (half, ~half)]
        left, right = (s > np.median(s) for s in sums)
        targets = targets_of((left == right).astype(int), "class")
        orders = [random.permutation(len(table)) for _ in range(PERMUTATIONS)]
        scores.append(score_of(kernel, targets, orders) if len(set(left == right)) > 1 else 0.0)
    return float(np.median(scores))


def control(inputs: Inputs) -> float:
    """The score of a label made from half of the features, for a probe on the other half; the best of several halves.

    Only rows of nearly equal length are exchanged, so length plays no role.
    """
    table = inputs.features[:FIRST_ROWS]
    best = 0.0
    for seed in range(CONTROLS):
        best = max(best, _score_of_half(inputs, table, np.random.default_rng(seed)))
        if best > 2 * PLAINLY_LEARNT:
            break
    return best


def _score_of_half(inputs: Inputs, table: np.ndarray, random: np.random.Generator) -> float:
    half = random.random(table.shape[1]) < 0.5
    table = table if inputs.kind == "numbers" else unit(table)
    left, right = table[:, half], table[:, ~half]
    if 0 in (left.shape[1], right.shape[1]):
        return 0.0
    direction = _main_direction(left - left.mean(axis=0))
    ranks = np.argsort(np.argsort(direction))
    targets = targets_of((ranks * 2 >= len(ranks)).astype(int), "class")
    orders = [_order_within_lengths(inputs.lengths[: len(table)], random) for _ in range(PERMUTATIONS)]
    other = right if inputs.kind == "numbers" else unit(right)
    kernel = products(other) / (np.mean((other**2).sum(axis=1)) or 1.0)
    return score_of(kernel, targets, orders)


def _main_direction(table: np.ndarray) -> np.ndarray:
    """Each row's position along the direction in which the rows differ most."""
    place = np.random.default_rng(2).standard_normal(len(table))
    for _ in range(20):
        place = table @ (table.T @ place)
        place /= np.linalg.norm(place) or 1.0
    return place


def _order_within_lengths(lengths: np.ndarray, random: np.random.Generator) -> np.ndarray:
    sorted_rows = np.lexsort((random.random(len(lengths)), lengths))
    if not lengths.any():
        return random.permutation(len(lengths))
    order = np.arange(len(lengths))
    for start in range(0, len(lengths), LENGTH_BLOCK):
        block = sorted_rows[start : start + LENGTH_BLOCK]
        order[block] = random.permutation(block)
    return order
