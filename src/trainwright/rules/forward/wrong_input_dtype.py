"""TW324 wrong-input-dtype: a layer's input has another dtype than its weights.

Why it matters: The forward pass stops. NumPy's numbers are float64 and images often uint8, while weights are float32.
Evidence: The dtypes of the layer's input and of its weights; with the inputs cast, the forward pass works.
Error: `must have the same dtype, but got`
Error: `to have the same dtype, but got`
Error: `Input type (…) and bias type (…) should be the same`
Error: `Input type (…) and weight type (…) should be the same`
Error: `RNN input dtype (…) does not match weight dtype`
Error: `all inputs must share same datatype`
Error: `Expected tensor for argument #1 'indices' to have one of the following scalar types`
Fix (safe): Cast the inputs to the dtype of the weights where they are built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainwright.core import Call, Finding, Fix, Place, Repair, Role, Safety, Seam, Severity, Tensors, rule
from trainwright.frameworks.error_texts import OF_DTYPES
from trainwright.rules.layer_sizes import failed_layer
from trainwright.stages import BatchFacts, ForwardFacts, ModuleFacts, SetupFacts


@rule("TW324", Severity.ERROR, after="TW301")
def wrong_input_dtype(forward: ForwardFacts, setup: SetupFacts, batch: BatchFacts | None) -> Iterator[Finding]:
    """A layer that raised on an input of another dtype."""
    failed = failed_layer(forward)
    if failed is None or not any(text in failed[1].message for text in OF_DTYPES):
        return
    layer, failure = failed
    wanted = _wanted(layer, forward)
    came = layer.inputs[0].dtype if layer.inputs else ""
    if not wanted or not came or wanted == came:
        return
    holds = "takes indices" if layer.kind == "Embedding" else f"has {wanted} weights"
    yield Finding(
        message=f"{layer.name or 'the model'} ({layer.kind}) {holds}, but its input is {came}",
        measured={"layer": layer.name, "wanted_dtype": wanted, "came_dtype": came},
        where=_place(layer, setup, batch) or failure.where,
        repair=_cast(came, wanted),
        fix=Fix(does=f"make the inputs {wanted} where they are built", safety=Safety.SAFE),
    )


def _wanted(layer: ModuleFacts, forward: ForwardFacts) -> str:
    """The dtype that a layer takes: that of its weights, or of indices."""
    if layer.kind == "Embedding":
        return "int64"
    dtypes = {p.dtype for p in forward.parameters if p.module == layer.name}
    return dtypes.pop() if len(dtypes) == 1 else ""


def _place(layer: ModuleFacts, setup: SetupFacts, batch: BatchFacts | None) -> Place | None:
    """Where the inputs are built, if they reach the layer as they are."""
    given = layer.inputs[0]
    whole = batch is not None and any((t.shape, t.dtype) == (given.shape, given.dtype) for t in batch.tensors.values())
    return setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET) if whole else None


def _cast(came: str, wanted: str) -> Repair:
    def change(call: Call) -> Call:
        inputs = call["inputs"]
        if isinstance(inputs, Mapping):
            return call.replace(inputs={k: _in_dtype(v, came, wanted, call.tensors) for k, v in inputs.items()})
        return call.replace(inputs=tuple(_in_dtype(v, came, wanted, call.tensors) for v in inputs))

    return Repair(f"cast the model's {came} inputs to {wanted}", Seam.FORWARD, change)


def _in_dtype(value: Any, came: str, wanted: str, tensors: Tensors) -> Any:
    is_cast = tensors.is_tensor(value) and str(value.dtype).rpartition(".")[2] == came
    return tensors.cast(value, wanted) if is_cast else value
