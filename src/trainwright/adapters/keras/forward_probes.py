"""Probes of a Keras model's forward pass: other inputs, other numbers of rows, other rows in the batch, later tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.batch import is_tokens
from trainwright.adapters.keras.input.nested_values import name_arrays, replace_arrays
from trainwright.adapters.keras.input.one_batch import FitBatch, X
from trainwright.adapters.keras.state import seed_everything
from trainwright.adapters.keras.training import FitTraining
from trainwright.probes.batches import asks_for_next_token
from trainwright.probes.forward import (
    LEAKS_BEYOND,
    changed_by_later_tokens,
    ignored_inputs,
    is_affine,
    later_half_changed,
    leaking_rows,
    move_values,
    placed_rows,
    same_for_other_inputs,
)
from trainwright.probes.information import Result
from trainwright.seams.devices.memory_owners import is_out_of_memory
from trainwright.seams.failures.blame import failure_of, note_own
from trainwright.seams.keras.layers import first_difference, traced
from trainwright.stages import Origin
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version


@dataclass(frozen=True)
class KerasModel:
    """A Keras model about to be fitted, as the probes call it, with the same random numbers each time."""

    fit: FitTraining

    def answer(self, inputs: FitBatch, *, training: bool = False, seed: int = 0) -> np.ndarray | None:
        """The first tensor of its output (rows, …); None if it raises."""
        found = self._answered(inputs, training=training, seed=seed)
        return tensors.to_numpy(found[0]) if found else None

    def all_answers(self, inputs: FitBatch) -> list[np.ndarray]:
        """Every tensor of its output, and the loss."""
        found, loss = self._answered(inputs), self.fit.look_at(inputs)[1]
        return [*(tensors.to_numpy(t) for t in found), *([] if loss is None else [np.asarray(loss)])]

    def _answered(self, inputs: FitBatch, *, training: bool = False, seed: int = 0) -> list[Any]:
        seed_everything(self.fit.model, seed)
        try:
            answer = self.fit.answer(inputs, training=training)
        except Exception as error:  # a batch that raises is reported with the step
            note_own(error)
            return []
        finally:
            if training:  # batch statistics were updated
                self.fit.reset()
        return [t for t in tensors.leaves(answer) if tensors.is_tensor(t)]

    def chosen(self, inputs: FitBatch, rows: Sequence[int]) -> FitBatch:
        """The inputs, with these rows only."""
        count = inputs.rows

        def taken(values: Any) -> Any:
            return values[list(rows)] if np.ndim(values) and len(values) == count else values

        return replace(inputs, x=keras.tree.map_structure(taken, inputs.x))

    def exchanged(self, inputs: FitBatch, name: str) -> FitBatch | None:
        """The inputs with one input's rows permuted; None if that changes nothing."""
        values = inputs.x[name]
        turned = np.roll(values, 1, axis=0) if isinstance(values, np.ndarray) else values
        if turned is values or np.array_equal(turned, values):
            return None
        return replace(inputs, x={**inputs.x, name: turned})

    def change_rows(self, inputs: FitBatch, change: Callable[[Any], Any]) -> FitBatch | None:
        """The inputs with each array of them changed; None if an input is not made of real numbers."""
        leaves = keras.tree.flatten(inputs.x)
        if inputs.rows < 2 or not all(np.ndim(v) > 1 and np.asarray(v).dtype.kind == "f" for v in leaves):
            return None
        changed = keras.tree.map_structure(lambda v: change(v).astype(v.dtype), inputs.x)
        return replace(inputs, x=changed)

    @contextlib.contextmanager
    def moved_weights(self) -> Iterator[None]:
        """Perturb every trained weight slightly inside the context; all are reset at the end."""
        random = np.random.default_rng(0)
        try:
            for variable in self.fit.model.trainable_variables:
                variable.assign(move_values(tensors.value_of(variable), random))
            yield
        finally:
            self.fit.reset()


def probes_of(fit: FitTraining, batches: Sequence[FitBatch], targets: Any) -> dict[str, Any]:
    """All probes, each from the initial weights, as fields of the forward pass's facts; none that was not tried.

    Args:
        targets: the targets that the first batch's loss compares with, as an array; None: no such loss was seen.
    """
    found, model, batch = dict[str, Any](), KerasModel(fit), batches[0]
    fit.reset()
    base = model.answer(batch)
    if base is None:
        return found
    if len(batches) > 1 and batches[1].rows == batch.rows and _differ(batch.x, batches[1].x):
        found |= same_for_other_inputs(model, base, batch, batches[1])
    if base.ndim and len(base) == batch.rows:
        leak = leaking_rows(model, base, batch, (0,))
        found["leaking_rows"] = leak[0] if leak is not None else None
        found["placed_rows"] = placed_rows(model, base, batch)
    found["affine"] = is_affine(model, batch)
    found |= _other_rows(fit, batch)
    if isinstance(batch.x, dict) and len(batch.x) > 1 < batch.rows:
        names = list(version().inputs_to_answer(fit.model, batch.x))
        found["ignored_inputs"] = ignored_inputs(model, batch, names)
    if name := next_token_input(batch, targets):
        found["predicts_next_token"] = True
        found["future_leak"], found["future_from"] = future_leak(fit, model.answer, batch, name)
    fit.reset()
    return found


def _differ(one: Any, other: Any) -> bool:
    pairs = zip(keras.tree.flatten(one), keras.tree.flatten(other))
    return any(a.shape != b.shape or not np.array_equal(a, b) for a, b in pairs)


def _other_rows(fit: FitTraining, batch: FitBatch) -> dict[str, Any]:
    """Whether the forward pass accepts the last training batch, or another number of rows."""
    last = fit.data.last_batch()
    if last is None or last.rows in (0, batch.rows):
        return {}
    try:
        fit.answer(last)
    except Exception as error:  # the smaller batch's exception is the finding
        if not is_out_of_memory(error):
            return {
                "fails_at_rows": last.rows,
                "other_rows_failure": failure_of(error),
                "other_rows_from": "the last training batch",
            }
    return {}


def next_token_input(batch: FitBatch, targets: Any) -> str:
    """The name of the token input whose tokens, shifted by one, are the targets; empty: there is none."""
    if not isinstance(targets, np.ndarray) or targets.dtype.kind not in "iuf":
        return ""
    inputs = {n: a for n, a in name_arrays(batch.x, X) if is_tokens(a) and a.shape[1] >= 4}
    return next((n for n, tokens in inputs.items() if asks_for_next_token(tokens, targets)), "")


def future_leak(
    fit: FitTraining, answer: Callable[[FitBatch], np.ndarray | None], batch: FitBatch, name: str
) -> tuple[float | None, Origin | None]:
    """How much outputs of the first half of the positions depend on tokens of the second, and the first such layer.

    Args:
        answer: computes the model's output for a batch.
        name: the input whose next token is to be predicted.
    """
    tokens = dict(name_arrays(batch.x, X))[name]
    altered = later_half_changed(tokens)

    def given(ids: np.ndarray) -> FitBatch:
        return FitBatch(x=replace_arrays(batch.x, X, {**dict(name_arrays(batch.x, X)), name: ids}), y=batch.y)

    leak = changed_by_later_tokens(lambda ids: answer(given(ids)), tokens, altered)
    if leak is None or leak <= LEAKS_BEYOND:
        return leak, None
    one, other = (_results(fit, given(ids), tokens.shape[1]) for ids in (tokens, altered))
    return leak, first_difference(one, other, LEAKS_BEYOND)


def _results(fit: FitTraining, batch: FitBatch, length: int) -> list[Result]:
    """The layers' outputs at the first half of the positions."""

    def keep(values: np.ndarray) -> np.ndarray | None:
        return values[:, : length // 2] if values.ndim == 3 and values.shape[1] == length else None

    seed_everything(fit.model, 0)
    with traced(fit.model, fit.seen, keep) as found:
        fit.answer(batch)
    return found
