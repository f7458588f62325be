"""Kernel ridge regression, judged by its leave-one-out predictions against those of permuted labels.

One matrix inverse serves the labels and all their permutations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trainwright.probes.labels.inputs import Inputs


def targets_of(labels: np.ndarray, kind: str) -> np.ndarray:
    """(rows, columns), centered: one column per class, with rare and frequent classes weighted equally; or ranks."""
    if kind == "real":
        ranks: np.ndarray = np.argsort(np.argsort(labels)).astype(np.float64)
        centred: np.ndarray = (ranks - ranks.mean()) / ranks.std()
        return centred[:, None]
    one_hot: np.ndarray = (labels[:, None] == np.unique(labels)[None]).astype(np.float64)
    share = one_hot.mean(axis=0)
    weighed: np.ndarray = (one_hot - share) / np.sqrt(share)
    return weighed


def kernels(inputs: Inputs) -> Any:
    """The probes' kernels, each with a mean diagonal of 1: linear, pairs of words, near neighbors."""
    if inputs.kind != "numbers":
        length = np.log1p(inputs.lengths)
        length = (length - length.mean()) / (length.std() or 1.0)
        near = np.exp(-0.5 * (length[:, None] - length[None]) ** 2)
        words = products(unit(inputs.features))
        yield words + 0.1 * near
        yield words**2  # every two words of a row, wherever they stand: agreement, negation
        if inputs.more is not None:
            yield 0.5 * words + 0.5 * products(unit(inputs.more)) + 0.1 * near
        if inputs.odd is not None and inputs.odd.shape[1]:
            yield products(inputs.odd) / inputs.odd.shape[1]
        return
    linear = products(inputs.features) / inputs.features.shape[1]
    squares = np.diag(linear)
    distance = np.maximum(squares[:, None] + squares[None] - 2 * linear, 0.0)
    yield linear
    middle = np.median(distance[distance > 0]) if (distance > 0).any() else 1.0
    yield np.exp(-distance / middle)
    yield np.exp(-8 * distance / middle)
    if inputs.more is not None and inputs.more.shape[1]:
        yield products(inputs.more) / inputs.more.shape[1]


def unit(table: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(size > 0, size, 1.0)


def products(table: np.ndarray) -> np.ndarray:
    table = table.astype(np.float32)
    return np.asarray(table @ table.T, dtype=np.float64)


def leave_one_out(kernel: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Each row's prediction by ridge regression on all other rows, in closed form.

    With H = K (K + I)^-1, K divided by the mean of its diagonal, the left-out residual of row i is (y - Hy)_i / (1 - H_ii).
    """
    inverse = np.linalg.inv(kernel + np.mean(np.diag(kernel)) * np.eye(len(kernel)))
    return np.asarray(targets - (inverse @ targets) / np.diag(inverse)[:, None])


def score_of(predicted: np.ndarray, targets: np.ndarray, orders: list[np.ndarray]) -> float:
    """How much better the labels fit than their permutations, in the permutations' standard deviations."""
    width = targets.shape[1]
    fits = [float((predicted[:, :width] * targets).mean())]
    for number, order in enumerate(orders, 1):
        fits.append(float((predicted[:, number * width : (number + 1) * width] * targets[order]).mean()))
    return (fits[0] - float(np.mean(fits[1:]))) / (float(np.std(fits[1:], ddof=1)) or 1e-12)


def accuracies(predicted: np.ndarray, targets: np.ndarray, orders: list[np.ndarray]) -> tuple[float, float]:
    width = targets.shape[1]
    shares = []
    for number, order in enumerate([np.arange(len(targets)), *orders]):
        guess = predicted[:, number * width : (number + 1) * width].argmax(axis=1)
        shares.append(float((guess == targets[order].argmax(axis=1)).mean()))
    return shares[0], float(np.mean(shares[1:]))
