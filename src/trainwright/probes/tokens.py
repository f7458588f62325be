"""Whether a model's outputs at earlier positions depend on later tokens."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainwright.probes.forward import difference


def later_half_changed(tokens: np.ndarray, vocabulary: int | None = None) -> np.ndarray:
    """Tokens (rows, length) with every token in the second half replaced.

    Args:
        vocabulary: number of tokens; None: up to the largest token here.
    """
    altered, half = tokens.copy(), tokens.shape[1] // 2
    altered[:, half:] = (altered[:, half:] + 1) % (vocabulary or int(tokens.max()) + 1)
    return altered


def future_leak(
    answer: Callable[[np.ndarray], np.ndarray | None],
    tokens: np.ndarray,
    altered: np.ndarray,
    counted: np.ndarray | None = None,
) -> float | None:
    """How much the outputs (rows, length, …) in the first half of the positions change when later tokens change.

    Args:
        altered: the tokens with the second half replaced.
        counted: the positions (rows, length) that count in the loss; None: all.

    Returns:
        The change relative to the outputs' scale; None if there is not one output per position.
    """
    length = tokens.shape[1]
    half = length // 2
    here = np.ones((len(tokens), half), dtype=bool) if counted is None else counted[:, :half]
    base = answer(tokens)
    if base is None or base.ndim != 3 or base.shape[1] != length or not here.any():
        return None
    changed = answer(altered)
    if changed is None or changed.shape != base.shape:
        return None
    return difference(base[:, :half][here], changed[:, :half][here])
