"""TW405 wrong-target-dtype: the targets have a dtype that the loss rejects or misinterprets.

Why it matters: The loss or its gradient stops, and the message names neither the labels nor the line that made them.
With float labels, a Hugging Face classifier assumes a task with several labels per row.
Evidence: The dtype of the targets at the loss call and the error that it raised; with the targets cast, the loss works.
Error: `expected target dtype to be Long or Byte, but got …`
Error: `expected scalar type Long but found …`
Error: `Expected floating point type for target with class probabilities, got …`
Error: `Found dtype … but expected …`
Error: `result type Float can't be cast to the desired output type …`
Error: `Target size … must be the same as input size …`
Fix (safe): Make class labels int64, and targets of other losses float32, where they are built.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainwright.core import Call, Fate, Finding, Fix, Place, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import BatchFacts, GradientFacts, LossCall, LossFacts, SetupFacts

_CLASS_LOSSES = ("cross_entropy", "nll_loss")
_REAL_LOSSES = ("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss",
                "huber_loss")  # fmt: skip
_OF_TYPES = ("dtype", "result type", "scalar type")
# Python's number types and the corresponding dtypes.
_OBJECTS = {"int": "int64", "float": "float32", "bool": "int64"}
_BINARY = "binary_cross_entropy_with_logits"


@rule("TW405", Severity.ERROR, foretells=Fate.STOPS)
def wrong_target_dtype(
    loss: LossFacts, setup: SetupFacts, batch: BatchFacts | None, gradients: GradientFacts | None
) -> Iterator[Finding]:
    """A loss that raised because of the targets' dtype."""
    call = loss.call
    failure = loss.failure or (gradients.failure if gradients else None)
    if call is None and failure is not None and batch is not None:
        yield from _of_objects(batch, setup)
    if call is None or failure is None or call.casts_targets:
        return
    wanted, function = _wanted(call, failure.message)
    if not wanted or (wanted == call.targets.dtype and function == call.function):
        return
    taken = (
        f": {call.function} was chosen for them" if function != call.function else f"; {call.function} takes {wanted}"
    )
    yield Finding(
        message=f"the targets are {call.targets.dtype}, one per row{taken}"
        if len(call.targets.shape) == 1
        else f"the targets are {call.targets.dtype}{taken}",
        measured={"target_dtype": call.targets.dtype, "wanted_dtype": wanted, "target_shape": str(call.targets.shape)},
        where=_where(setup, loss, batch, call),
        proof=Proof(f"{failure.type}: {failure.message.strip().splitlines()[0]}"),
        repair=_cast(call.function, function, wanted),
        fix=Fix(does=f"make the labels {wanted} where they are built", safety=Safety.SAFE),
    )


def _wanted(call: LossCall, message: str) -> tuple[str, str]:
    """The dtype that the targets should have, and the loss that accepts them; "" if the dtype is not the cause."""
    scores, targets = call.inputs, call.targets
    whole = bool(call.target_values) and all(v == int(v) and v >= -100 for v in call.target_values)
    if call.function in _CLASS_LOSSES:
        if scores.shape == targets.shape and targets.is_integer:
            return ("float32", call.function) if max(call.target_values, default=2) <= 1 else ("", "")
        one_a_row = len(targets.shape) == len(scores.shape) - 1
        return ("int64", call.function) if one_a_row and targets.dtype != "int64" and whole else ("", "")
    if call.function == _BINARY and len(scores.shape) == 2 and targets.shape == scores.shape[:1] and targets.is_float:
        fits = whole and scores.shape[1] > 1 and max(call.target_values) < scores.shape[1] + 1
        return ("int64", "cross_entropy") if fits else ("", "")
    if call.function in _REAL_LOSSES and any(word in message for word in _OF_TYPES):
        return (scores.dtype, call.function) if targets.dtype != scores.dtype else ("", "")
    return "", ""


def _where(setup: SetupFacts, loss: LossFacts, batch: BatchFacts | None, call: LossCall) -> Place | None:
    """Where the labels are built, if they reach the loss unchanged; otherwise the loss call."""
    labels = batch.labels if batch else None
    if call.at and (labels is None or labels.dtype != call.targets.dtype):
        return call.at
    return setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET) or loss.at or setup.place(Role.TRAINER)


def _cast(function: str, instead: str, dtype: str) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        return call.replace(function=instead, targets=call.tensors.cast(call["targets"], dtype))

    told = f", and compute {instead}" if instead != function else ""
    return Repair(f"cast the targets to {dtype}{told}", Seam.LOSS, change)


def _of_objects(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Numbers stored as Python objects in an array, which cannot be converted to a tensor."""
    for key in batch.target_keys or ():
        kind = batch.others.get(key, "").removeprefix("object array of ")
        if kind not in _OBJECTS:
            continue
        dtype = _OBJECTS[kind]

        def cast(call: Call, key: str = key, dtype: str = dtype) -> Call:
            return call.replace(**{key: np.asarray(call[key]).astype(dtype)})

        yield Finding(
            message=f"the targets are an array of Python objects ({kind}), which cannot be converted to a tensor",
            measured={"target_dtype": "object", "wanted_dtype": dtype},
            where=setup.place(Role.LABELS_MADE, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
            proof=Proof(f"each of the batch's targets is a Python {kind}; cast to {dtype}, the step works"),
            repair=Repair(f"cast the targets to {dtype}", Seam.BATCH, cast),
            fix=Fix(does=f'give the targets one number type: .astype("{dtype}")', safety=Safety.SAFE),
        )
