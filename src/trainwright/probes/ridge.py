"""The simple learner: kernel ridge regression on plain arrays, whose answer for each row may leave that row out.

Whether it learned anything is judged by its answers for permuted labels: one matrix inverse serves the labels and all their
permutations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

# A pixel at the border, which is hardly ever set, is far more deviations away when it is: it would outweigh all others.
FURTHEST = 10.0


def class_columns(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(rows, classes), centred: in these columns rare and frequent classes weigh the same."""
    one_hot = (labels[:, None] == classes[None]).astype(np.float64)
    share = one_hot.mean(axis=0)
    return np.asarray((one_hot - share) / np.sqrt(share))


def standardise(table: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The columns in their deviations from these means; what is further off is as far as the furthest."""
    return np.asarray(np.clip((table - mean) / np.where(deviation > 0, deviation, 1.0), -FURTHEST, FURTHEST))


def unit(table: np.ndarray) -> np.ndarray:
    """The rows with a length of 1."""
    size = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(size > 0, size, 1.0)


def products(table: np.ndarray) -> np.ndarray:
    """(rows, rows): the inner products, computed in single precision."""
    table = table.astype(np.float32)
    return np.asarray(table @ table.T, dtype=np.float64)


def distances(inner: np.ndarray) -> np.ndarray:
    """(rows, rows): the squared distances of rows with these inner products."""
    squares = np.diag(inner)
    return np.asarray(np.maximum(squares[:, None] + squares[None] - 2 * inner, 0.0))


def squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(rows of the left, rows of the right); rounding may make one a little less than 0."""
    return np.asarray((left**2).sum(axis=1)[:, None] - 2 * left @ right.T + (right**2).sum(axis=1)[None])


def kernel_of(left: np.ndarray, right: np.ndarray, width: float) -> np.ndarray:
    """A Gaussian kernel of this width, in units of the number of columns; for width 0 a linear one."""
    if not width:
        return np.asarray(left @ right.T / left.shape[1])
    return np.asarray(np.exp(-np.maximum(squared_distances(left, right), 0.0) / (width * left.shape[1])))


def ridge(kernel: np.ndarray, targets: np.ndarray, penalty: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the rows, and what is left of each row's targets by the regression on all other rows, in closed form.

    With H = K (K + penalty I)^-1 the left-out residual of row i is (y - Hy)_i / (1 - H_ii).

    Args:
        penalty: None: the mean of the kernel's diagonal.
    """
    shrink = float(np.mean(np.diag(kernel))) if penalty is None else penalty
    inverse = np.linalg.inv(kernel + shrink * np.eye(len(kernel)))
    weights = inverse @ targets
    return weights, weights / np.diag(inverse)[:, None]


def leave_one_out(kernel: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Each row's prediction by ridge regression on all other rows."""
    return np.asarray(targets - ridge(kernel, targets)[1])


def best_of(
    kernels: Iterable[np.ndarray], targets: np.ndarray, orders: Sequence[np.ndarray], enough: float
) -> tuple[float, np.ndarray] | None:
    """The score of the kernel that predicts the targets best, and its predictions: of the targets, then of their permutations.

    Args:
        enough: the search ends at this score above the permutations' mean, in their standard deviations.
    """
    every = np.concatenate([targets, *(targets[order] for order in orders)], axis=1)
    best: tuple[float, np.ndarray] | None = None
    for kernel in kernels:
        predicted = leave_one_out(kernel, every)
        score = _score_of(predicted, targets, orders)
        if best is None or score > best[0]:
            best = score, predicted
        if best[0] > enough:
            break
    return best


def score_of(kernel: np.ndarray, targets: np.ndarray, orders: Sequence[np.ndarray]) -> float:
    """How much better the targets fit than their permutations, in the permutations' standard deviations."""
    found = best_of([kernel], targets, orders, np.inf)
    assert found is not None
    return found[0]


def _score_of(predicted: np.ndarray, targets: np.ndarray, orders: Sequence[np.ndarray]) -> float:
    width = targets.shape[1]
    fits = [float((predicted[:, :width] * targets).mean())]
    for number, order in enumerate(orders, 1):
        fits.append(float((predicted[:, number * width : (number + 1) * width] * targets[order]).mean()))
    return (fits[0] - float(np.mean(fits[1:]))) / (float(np.std(fits[1:], ddof=1)) or 1e-12)


def accuracies(predicted: np.ndarray, targets: np.ndarray, orders: Sequence[np.ndarray]) -> tuple[float, float]:
    """The share of rows whose class is right, and the mean of those of the permutations."""
    width = targets.shape[1]
    shares = []
    for number, order in enumerate([np.arange(len(targets)), *orders]):
        guess = predicted[:, number * width : (number + 1) * width].argmax(axis=1)
        shares.append(float((guess == targets[order].argmax(axis=1)).mean()))
    return shares[0], float(np.mean(shares[1:]))
