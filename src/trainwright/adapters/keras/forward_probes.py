"""Probes of a Keras model's forward pass: other inputs, other numbers of rows, rows beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.fit_data import Batch
from trainwright.adapters.keras.memory import is_out_of_memory
from trainwright.adapters.keras.state import seed_everything
from trainwright.adapters.keras.token_probes import FutureLeak, future_leak, next_token_input
from trainwright.adapters.keras.training import FitTraining
from trainwright.core.finding import Failure
from trainwright.seams.failures.blame import failure_of, note_own
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

_SAME_WITHIN = 1e-6
_PERTURBED_BY = 0.1


@dataclass(kw_only=True)
class Probes:
    """What the probes show; None: not tried, or does not apply."""

    same_for_other_inputs: bool | None = None
    same_when_perturbed: bool | None = None
    fails_at_rows: int | None = None
    other_rows_failure: Failure | None = None
    other_rows_from: str = ""
    leaking_rows: float | None = None
    ignored_inputs: tuple[str, ...] = ()
    predicts_next_token: bool = False
    future_leak: FutureLeak | None = None


def probes_of(fit: FitTraining, batches: Sequence[Batch], targets: Any) -> Probes:
    """All probes, each from the weights at the start.

    Args:
        targets: what the loss of the first batch compares with, as an array; None: no loss that compares was seen.
    """
    found = Probes()
    fit.reset()
    first = _answer(fit, batches[0])
    if first is None:
        return found
    if len(batches) > 1 and batches[1].rows == batches[0].rows:
        other = _answer(fit, batches[1])
        if other is not None and other.shape == first.shape and _differ(batches[0].x, batches[1].x):
            # Batch statistics that nothing has gathered yet leave a raw scale as it is: training is not evaluation.
            found.same_for_other_inputs = _same(first, other) and _same_in_training(fit, batches)
            if found.same_for_other_inputs:
                found.same_when_perturbed = _same_perturbed(fit, batches)
    _leaks(fit, batches, first, found)
    _other_rows(fit, batches[0], found)
    found.ignored_inputs = tuple(_ignored(fit, batches[0]))
    if name := next_token_input(batches[0], targets):
        found.predicts_next_token, found.future_leak = True, future_leak(fit, batches[0], name)
    fit.reset()
    return found


def _same_in_training(fit: FitTraining, batches: Sequence[Batch]) -> bool:
    one, other = (_answer(fit, b, training=True) for b in batches[:2])
    fit.reset()
    return one is None or other is None or _same(one, other)


def _answer(fit: FitTraining, batch: Batch, *, training: bool = False) -> np.ndarray | None:
    seed_everything(fit.model, 0)  # what a layer draws is to be the same each time
    try:
        output = fit.answer(batch, training=training)
    except Exception as error:  # a batch that raises is measured as a step
        note_own(error)
        return None
    found = next((t for t in tensors.leaves(output) if tensors.is_tensor(t)), None)
    return tensors.to_numpy(found) if found is not None else None


def _differ(one: Any, other: Any) -> bool:
    pairs = zip(keras.tree.flatten(one), keras.tree.flatten(other))
    return any(a.shape != b.shape or not np.array_equal(a, b) for a, b in pairs)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    scale = float(np.abs(one).max()) or 1.0
    return bool(np.abs(one.astype(np.float64) - other).max() <= _SAME_WITHIN * scale)


def _same_perturbed(fit: FitTraining, batches: Sequence[Batch]) -> bool | None:
    _move_weights(fit)
    one, other = (_answer(fit, b) for b in batches[:2])
    fit.reset()
    return None if one is None or other is None else _same(one, other)


def _move_weights(fit: FitTraining) -> None:
    """Perturb all weights that train, until `reset`."""
    random = np.random.default_rng(0)
    for variable in fit.model.trainable_variables:
        values = tensors.value_of(variable)
        spread = float(values.std()) or 0.1
        variable.assign(values + random.normal(0, _PERTURBED_BY * spread, values.shape).astype(values.dtype))


def _leaks(fit: FitTraining, batches: Sequence[Batch], first: np.ndarray, found: Probes) -> None:
    """By how much row 0's output changes when only the other rows do."""
    rows = batches[0].rows
    if len(batches) < 2 or rows < 2 or batches[1].rows != rows or first.ndim == 0 or len(first) != rows:
        return
    again = _answer(fit, batches[0])
    if again is None or not np.array_equal(again, first):  # it keeps a state from call to call
        return
    mixed = keras.tree.map_structure(
        lambda a, b: np.concatenate([a[:1], b[1:]]) if a.shape == b.shape else a, batches[0].x, batches[1].x
    )
    answer = _answer(fit, Batch(x=mixed, y=batches[0].y))
    if answer is None or answer.shape != first.shape:
        return
    scale = float(np.abs(first).max()) or 1.0
    found.leaking_rows = float(np.abs(answer[0].astype(np.float64) - first[0]).max() / scale)


def _other_rows(fit: FitTraining, batch: Batch, found: Probes) -> None:
    """Whether the forward pass takes the last training batch, or another number of rows."""
    last = fit.data.last_batch()
    if last is None or last.rows in (0, batch.rows) or fit.drops_last:
        return
    try:
        fit.answer(fit.repaired(last))
    except Exception as error:  # what a smaller batch raises is the finding
        if is_out_of_memory(error):
            return
        found.fails_at_rows = last.rows
        found.other_rows_failure = failure_of(error)
        found.other_rows_from = "the last training batch"


def _ignored(fit: FitTraining, batch: Batch) -> list[str]:
    """Names of inputs, of several, whose exchange between rows changes neither an output nor the loss.

    What begins with weights of zero lets nothing through either: the suspects are tried again with the weights moved.
    """
    if not isinstance(batch.x, dict) or len(batch.x) < 2 or batch.rows < 2:
        return []
    suspects = _without_effect(fit, batch, version().inputs_to_answer(fit.model, batch.x))
    if suspects:
        _move_weights(fit)
        suspects = _without_effect(fit, batch, suspects)
        fit.reset()
    return list(suspects)


def _without_effect(fit: FitTraining, batch: Batch, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these inputs, at the weights in force; what is no array, or the same in each row, is none of them."""
    whole, loss = _whole_answer(fit, batch), fit.look_at(batch)[1]
    found: dict[str, Any] = {}
    for name, values in inputs.items() if whole else ():
        turned = np.roll(values, 1, axis=0) if isinstance(values, np.ndarray) else values
        if turned is values or np.array_equal(turned, values):
            continue
        changed = replace(batch, x={**batch.x, name: turned})
        if _whole_answer(fit, changed) == whole and fit.look_at(changed)[1] == loss:
            found[name] = values
    return found


def _whole_answer(fit: FitTraining, batch: Batch) -> list[bytes]:
    """Every output of the model, to the last bit."""
    seed_everything(fit.model, 0)
    try:
        output = fit.answer(batch)
    except Exception as error:  # a batch that raises is measured as a step
        note_own(error)
        return []
    return [tensors.to_numpy(t).tobytes() for t in tensors.leaves(output) if tensors.is_tensor(t)]
