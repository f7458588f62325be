"""Whether labels belong to their inputs: does a small probe learn them better than permutations of them?

The probe is kernel ridge regression, judged by its leave-one-out predictions. One matrix inverse serves the labels and
all their permutations, so a set takes about a second. A control shows whether the probe could learn anything at all: a
label made from one half of the features is predicted from the other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from trainwright.probes.labels.inputs import Inputs, read_as_tokens, read_inputs
from trainwright.stages.alignment import Alignment

# Rows of the first attempt, and of the second one if the first finds nothing: about 0.5 s and 2 s on one core.
FIRST_ROWS = 1_200
MOST_ROWS = 1_600
FEWEST_ROWS = 250
# With fewer rows per class, or fewer rows outside the largest class, noise can hide a real relation.
FEWEST_A_CLASS = 12
FEWEST_OUTSIDE = 60
PERMUTATIONS = 40
# More distinct integers than this are a count or a score, not classes; NUMBERINGS: how many other numberings are tried.
MOST_NUMBERED = 20
NUMBERINGS = 60
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


def _measure(inputs: Inputs, labels: np.ndarray, kind: str) -> Alignment | None:
    targets = _targets(labels, kind)
    random = np.random.default_rng(0)
    orders = [random.permutation(len(labels)) for _ in range(PERMUTATIONS)]
    best, accuracies = -np.inf, (0.0, 0.0)
    numbered: tuple[float, float] | None = None
    for kernel in _kernels(inputs):
        numbered = numbered or _numbering_errors(kernel, labels)
        predicted = _leave_one_out(kernel, np.concatenate([targets, *(targets[o] for o in orders)], axis=1))
        score = _score(predicted, targets, orders)
        if score > best:
            best, accuracies = score, _accuracies(predicted, targets, orders)
        if best > PLAINLY_LEARNT:
            break
    words_alone = best <= PLAINLY_LEARNT and inputs.kind != "numbers"
    return Alignment(
        rows=len(labels),
        score=float(best),
        control_score=_control(inputs) if best <= PLAINLY_LEARNT else float("nan"),
        accuracy=accuracies[0] if kind == "class" else None,
        permuted_accuracy=accuracies[1] if kind == "class" else None,
        single=inputs.single,
        classes=targets.shape[1] if kind == "class" else None,
        likeness=_likeness(inputs) if words_alone else None,
        pair_control_score=_pair_control(inputs) if words_alone else None,
        inputs=inputs.kind,
        numbering_error=numbered[0] if numbered else None,
        other_numberings_error=numbered[1] if numbered else None,
    )


def _likeness(inputs: Inputs) -> float:
    """The similarity (cosine of weighted words) of a row to its nearest neighbor, the median over the rows."""
    similar = _linear(_unit(inputs.features[:FIRST_ROWS]))
    np.fill_diagonal(similar, 0.0)
    return float(np.median(similar.max(axis=1)))


def _pair_control(inputs: Inputs) -> float:
    """The score of labels that only pairs of words determine: whether two sums over the words agree."""
    table = _unit(inputs.features[:FIRST_ROWS])
    kernel, scores = _linear(table) ** 2, []
    for seed in range(CONTROLS):
        random = np.random.default_rng(seed)
        half = np.asarray(random.random(table.shape[1]) < 0.5)
        sums = [table[:, part] @ random.choice([-1.0, 1.0], int(part.sum())) for part in (half, ~half)]
        left, right = (s > np.median(s) for s in sums)
        targets = _targets((left == right).astype(int), "class")
        orders = [random.permutation(len(table)) for _ in range(PERMUTATIONS)]
        predicted = _leave_one_out(kernel, np.concatenate([targets, *(targets[o] for o in orders)], axis=1))
        scores.append(_score(predicted, targets, orders) if len(set(left == right)) > 1 else 0.0)
    return float(np.median(scores))


def _numbering_errors(kernel: np.ndarray, labels: np.ndarray) -> tuple[float, float] | None:
    """The prediction error of the labels as a quantity, with their own numbering and with others."""
    values, index = np.unique(labels, return_inverse=True)
    count = len(values)
    if not 3 <= count <= MOST_NUMBERED or bool((values != np.round(values)).any()):
        return None
    random = np.random.default_rng(0)
    if count <= 4:  # a numbering and its reverse are one
        others = [p for p in permutations(range(count)) if p[0] < p[-1] and p != tuple(range(count))]
    else:
        others = [tuple(random.permutation(count)) for _ in range(NUMBERINGS)]
    columns = np.stack([np.asarray(p, dtype=float)[index] for p in (tuple(range(count)), *others)], axis=1)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    predicted = _leave_one_out(kernel, columns)
    fit = (predicted * columns).mean(axis=0) / (predicted.std(axis=0) + 1e-12)
    errors = 1 - np.maximum(fit, 0.0) ** 2
    return float(errors[0]), float(np.median(errors[1:]))


def _targets(labels: np.ndarray, kind: str) -> np.ndarray:
    """(rows, columns), centered: one column per class, with rare and frequent classes weighted equally; or ranks."""
    if kind == "real":
        ranks: np.ndarray = np.argsort(np.argsort(labels)).astype(np.float64)
        centred: np.ndarray = (ranks - ranks.mean()) / ranks.std()
        return centred[:, None]
    one_hot: np.ndarray = (labels[:, None] == np.unique(labels)[None]).astype(np.float64)
    share = one_hot.mean(axis=0)
    weighed: np.ndarray = (one_hot - share) / np.sqrt(share)
    return weighed


def _kernels(inputs: Inputs) -> Any:
    """The probes' kernels, each with a mean diagonal of 1: linear, pairs of words, near neighbors."""
    if inputs.kind != "numbers":
        length = np.log1p(inputs.lengths)
        length = (length - length.mean()) / (length.std() or 1.0)
        near = np.exp(-0.5 * (length[:, None] - length[None]) ** 2)
        words = _linear(_unit(inputs.features))
        yield words + 0.1 * near
        yield words**2  # every two words of a row, wherever they stand: agreement, negation
        if inputs.more is not None:
            yield 0.5 * words + 0.5 * _linear(_unit(inputs.more)) + 0.1 * near
        if inputs.odd is not None and inputs.odd.shape[1]:
            yield _linear(inputs.odd) / inputs.odd.shape[1]
        return
    linear = _linear(inputs.features) / inputs.features.shape[1]
    squares = np.diag(linear)
    distance = np.maximum(squares[:, None] + squares[None] - 2 * linear, 0.0)
    yield linear
    middle = np.median(distance[distance > 0]) if (distance > 0).any() else 1.0
    yield np.exp(-distance / middle)
    yield np.exp(-8 * distance / middle)
    if inputs.more is not None and inputs.more.shape[1]:
        yield _linear(inputs.more) / inputs.more.shape[1]


def _unit(table: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(size > 0, size, 1.0)


def _linear(table: np.ndarray) -> np.ndarray:
    table = table.astype(np.float32)
    return np.asarray(table @ table.T, dtype=np.float64)


def _leave_one_out(kernel: np.ndarray, targets: np.ndarray, penalty: float = 1.0) -> np.ndarray:
    """Each row's prediction by ridge regression on all other rows, in closed form.

    With H = K (K + penalty I)^-1 the left-out residual of row i is (y - Hy)_i / (1 - H_ii).
    """
    inverse = np.linalg.inv(kernel + penalty * np.mean(np.diag(kernel)) * np.eye(len(kernel)))
    return np.asarray(targets - (inverse @ targets) / np.diag(inverse)[:, None])


def _score(predicted: np.ndarray, targets: np.ndarray, orders: list[np.ndarray]) -> float:
    """How much better the labels fit than their permutations, in the permutations' standard deviations."""
    width = targets.shape[1]
    fits = [float((predicted[:, :width] * targets).mean())]
    for number, order in enumerate(orders, 1):
        fits.append(float((predicted[:, number * width : (number + 1) * width] * targets[order]).mean()))
    return (fits[0] - float(np.mean(fits[1:]))) / (float(np.std(fits[1:], ddof=1)) or 1e-12)


def _accuracies(predicted: np.ndarray, targets: np.ndarray, orders: list[np.ndarray]) -> tuple[float, float]:
    width = targets.shape[1]
    shares = []
    for number, order in enumerate([np.arange(len(targets)), *orders]):
        guess = predicted[:, number * width : (number + 1) * width].argmax(axis=1)
        shares.append(float((guess == targets[order].argmax(axis=1)).mean()))
    return shares[0], float(np.mean(shares[1:]))


def _control(inputs: Inputs) -> float:
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
    table = table if inputs.kind == "numbers" else _unit(table)
    left, right = table[:, half], table[:, ~half]
    if 0 in (left.shape[1], right.shape[1]):
        return 0.0
    direction = _main_direction(left - left.mean(axis=0))
    ranks = np.argsort(np.argsort(direction))
    targets = _targets((ranks * 2 >= len(ranks)).astype(int), "class")
    orders = [_order_within_lengths(inputs.lengths[: len(table)], random) for _ in range(PERMUTATIONS)]
    other = right if inputs.kind == "numbers" else _unit(right)
    kernel = _linear(other) / (np.mean((other**2).sum(axis=1)) or 1.0)
    predicted = _leave_one_out(kernel, np.concatenate([targets, *(targets[o] for o in orders)], axis=1))
    return _score(predicted, targets, orders)


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
