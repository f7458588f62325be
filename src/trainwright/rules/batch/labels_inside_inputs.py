"""TW205 labels-inside-inputs: the loss needs targets, but the data yields one dictionary with the labels inside.

Why it matters: Training stops in the loss (or skips it by mistake), with a message that mentions neither labels nor
data: about None on TensorFlow, the dtype `object` on torch, an array of None on JAX.
Evidence: The structure of one batch: inputs without targets, and a key for labels among the inputs.
Error: `None values not supported.`
Error: `Invalid dtype: object`
Error: `None is not a valid value for jnp.array`
Fix (safe): Yield pairs (inputs, labels), or pass label_cols= when creating the data set; or compile without a loss if
the model computes its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.core import Finding, Fix, Proof, Repair, Role, Safety, Severity, Tensors, rule
from trainwright.rules.repairs import change_batches
from trainwright.stages import BatchFacts, SetupFacts

LABELS = ("labels", "label", "label_ids", "targets", "target", "y")
# The key of a batch's target if it has no name of its own.
TARGET = "y"


@rule("TW205", Severity.ERROR)
def labels_inside_inputs(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Inputs that contain the labels, and no targets, for a loss that needs targets."""
    key = misplaced_labels(batch)
    if key is None or (batch.targets_found and "loss" not in setup.arguments):
        return
    loss, keys = batch.targets_wanted_by, ", ".join(batch.tensors)
    own = ", or compile without a loss: the model takes labels and computes its own" if key in _taken(batch) else ""
    message = f'the loss "{loss}" needs targets, but the data yields none: "{key}" is one of the inputs ({keys})'
    if batch.targets_found:
        message = (
            f'"{key}" is one of the inputs ({keys}), from which the model computes its own loss, but the string loss "{loss}" '
            "is trained on instead"
        )
    yield Finding(
        message=message,
        measured={"loss": loss, "key": key, "keys": keys},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"a batch of {batch.rows} rows is one dictionary of {keys}, not a pair (inputs, targets)"),
        repair=_apart(key),
        fix=Fix(
            does=f'yield pairs: (inputs without "{key}", their "{key}"); with to_tf_dataset, label_cols=["{key}"]{own}',
            safety=Safety.SAFE,
        ),
    )


def misplaced_labels(batch: BatchFacts) -> str | None:
    """The key of the inputs with the targets that the loss needs."""
    if batch.target_keys != () or not batch.targets_wanted_by:
        return None
    return next((k for k in LABELS if k in batch.tensors), None)


def _taken(batch: BatchFacts) -> tuple[str, ...]:
    return batch.accepts if set(batch.accepts) != set(batch.tensors) else ()


def _apart(key: str) -> Repair:
    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        return {**{k: v for k, v in batch.items() if k != key}, TARGET: batch[key]}

    return change_batches(f'move "{key}" from the inputs to the targets', change)
