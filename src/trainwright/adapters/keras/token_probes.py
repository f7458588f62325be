"""Probes of a Keras model that reads tokens: whether it is to predict the next one, and whether it sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.batch import is_tokens
from trainwright.adapters.keras.input.fit_data import Batch, X
from trainwright.adapters.keras.input.nested_values import named, renewed
from trainwright.adapters.keras.state import seed_everything
from trainwright.adapters.keras.training import FitTraining
from trainwright.seams.keras.trace import Given, first_difference, relative_change, traced
from trainwright.stages.batch import asks_for_next_token
from trainwright.stages.forward import Origin
from trainwright.tensors.keras import objects as tensors

LEAKS_BEYOND = 1e-3


@dataclass(frozen=True)
class FutureLeak:
    """How far outputs of the first half of the positions depend on tokens of the second."""

    change: float
    """By how much they change, relative to their scale."""
    origin: Origin | None
    """The first layer whose result does."""


def next_token_input(batch: Batch, targets: Any) -> str:
    """The name of the token input whose tokens, moved by one, are the targets; empty: there is none."""
    if not isinstance(targets, np.ndarray) or targets.dtype.kind not in "iuf":
        return ""
    inputs = {n: a for n, a in named(batch.x, X) if is_tokens(a) and a.shape[1] >= 4}
    return next((n for n, tokens in inputs.items() if asks_for_next_token(tokens, targets)), "")


def future_leak(fit: FitTraining, batch: Batch, name: str) -> FutureLeak | None:
    """Change the later half of the tokens of an input alone, and see what earlier positions say.

    Args:
        name: the input whose next token is to be predicted.
    """
    tokens = dict(named(batch.x, X))[name]
    half = tokens.shape[1] // 2
    altered = tokens.copy()
    altered[:, half:] = (altered[:, half:] + 1) % (int(tokens.max()) + 1)
    one, first = _pass(fit, batch, tokens.shape[1])
    other, second = _pass(
        fit,
        Batch(x=renewed(batch.x, X, {**dict(named(batch.x, X)), name: altered}), y=batch.y),
        tokens.shape[1],
    )
    if first is None or second is None or first.shape != second.shape:
        return None
    change = relative_change(first, second)
    return FutureLeak(change, first_difference(one, other, LEAKS_BEYOND) if change > LEAKS_BEYOND else None)


def _pass(fit: FitTraining, batch: Batch, length: int) -> tuple[list[Given], np.ndarray | None]:
    """What the layers, and the model, say of the first half of the positions."""

    def keep(values: np.ndarray) -> np.ndarray | None:
        return values[:, : length // 2] if values.ndim == 3 and values.shape[1] == length else None

    seed_everything(fit.model, 0)
    with traced(fit.model, fit.seen, keep) as given:
        answer = fit.answer(batch)
    first = next((t for t in tensors.leaves(answer) if tensors.is_tensor(t)), None)
    return given, keep(tensors.to_numpy(first)) if first is not None else None
