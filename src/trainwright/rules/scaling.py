"""How rules examine the scale of inputs and change it."""

from __future__ import annotations

from typing import Any

from trainwright.core import Call, Repair, Seam, Tensors
from trainwright.rules.repairs import change_batches
from trainwright.stages import BatchFacts, ForwardFacts, ModuleFacts, TensorFacts

# Pixels divided by 255 twice reach at most 0.004; inputs between 0 and 1, or with unit variance, exceed this.
SMALL = 0.01
# The steps of a trial with another scale.
STEPS = 24
BATCHES = 3


def reach(tensor: TensorFacts) -> float:
    """The largest distance of a value from zero."""
    return max(abs(tensor.minimum or 0.0), abs(tensor.maximum or 0.0))


def real_inputs(batch: BatchFacts) -> dict[str, TensorFacts]:
    """The floating-point inputs, as the model gets them."""
    return {
        k: t
        for k, t in batch.tensors.items()
        if (t.is_float or k in batch.made_floats)
        and k not in (batch.label_key, *(batch.target_keys or ()))
        and "mask" not in k
        and "label" not in k
    }


def scaled_away(forward: ForwardFacts) -> ModuleFacts | None:
    """The layer without weights that leaves almost nothing for the first layer with weights."""
    first = next((i for i, m in enumerate(forward.modules) if m.leaf and m.sizes), None)
    if first is None or not (given := forward.modules[first].inputs) or not given[0].is_float:
        return None
    if not 0 < reach(given[0]) < SMALL:
        return None
    before = [m for m in forward.modules[:first] if m.leaf and m.inputs and m.output and reach(m.inputs[0]) >= SMALL]
    return next((m for m in reversed(before) if m.output and reach(m.output) < SMALL), None)


def rescale(key: str, scale: tuple[Any, Any], does: str) -> Repair:
    """For a trial, subtract a mean from an input and divide by a deviation."""

    def change(call: Call) -> Call:
        return call.replace(**{key: _scaled(call[key], scale, call.tensors)}) if key in call.given else call

    return Repair(does, Seam.BATCH, change)


def keep_scaled(key: str, scale: tuple[Any, Any], does: str) -> Repair:
    """The same for the rest of the check."""

    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        return {**batch, key: _scaled(batch[key], scale, tensors)} if key in batch else batch

    return change_batches(does, change)


def _scaled(tensor: Any, scale: tuple[Any, Any], tensors: Tensors) -> Any:
    values = (tensors.to_numpy(tensor) - scale[0]) / scale[1]
    integers = "int" in str(tensor.dtype)  # that the model makes floats of
    return tensors.like(values, tensor, "float32" if integers else None)
