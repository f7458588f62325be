"""Probes of a Keras model that reads tokens: whether it is meant to predict the next one, and whether it sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.batch import is_tokens
from trainwright.adapters.keras.input.nested_values import named, renewed
from trainwright.adapters.keras.input.one_batch import Batch, X
from trainwright.adapters.keras.state import seed_everything
from trainwright.adapters.keras.training import FitTraining
from trainwright.probes.forward import LEAKS_BEYOND, changed_by_later_tokens, later_half_changed
from trainwright.probes.information import Result
from trainwright.seams.keras.layers import first_difference, traced
from trainwright.stages.batch import asks_for_next_token
from trainwright.stages.forward import Origin


def next_token_input(batch: Batch, targets: Any) -> str:
    """The name of the token input whose tokens, shifted by one, are the targets; empty: there is none."""
    if not isinstance(targets, np.ndarray) or targets.dtype.kind not in "iuf":
        return ""
    inputs = {n: a for n, a in named(batch.x, X) if is_tokens(a) and a.shape[1] >= 4}
    return next((n for n, tokens in inputs.items() if asks_for_next_token(tokens, targets)), "")


def future_leak(
    fit: FitTraining, answer: Callable[[Batch], np.ndarray | None], batch: Batch, name: str
) -> tuple[float | None, Origin | None]:
    """How much outputs of the first half of the positions depend on tokens of the second, and the first such layer.

    Args:
        answer: computes the model's output for a batch.
        name: the input whose next token is to be predicted.
    """
    tokens = dict(named(batch.x, X))[name]
    altered = later_half_changed(tokens)

    def given(ids: np.ndarray) -> Batch:
        return Batch(x=renewed(batch.x, X, {**dict(named(batch.x, X)), name: ids}), y=batch.y)

    leak = changed_by_later_tokens(lambda ids: answer(given(ids)), tokens, altered)
    if leak is None or leak <= LEAKS_BEYOND:
        return leak, None
    one, other = (_results(fit, given(ids), tokens.shape[1]) for ids in (tokens, altered))
    return leak, first_difference(one, other, LEAKS_BEYOND)


def _results(fit: FitTraining, batch: Batch, length: int) -> list[Result]:
    """The layers' outputs at the first half of the positions."""

    def keep(values: np.ndarray) -> np.ndarray | None:
        return values[:, : length // 2] if values.ndim == 3 and values.shape[1] == length else None

    seed_everything(fit.model, 0)
    with traced(fit.model, fit.seen, keep) as found:
        fit.answer(batch)
    return found
