"""TW406 sparse-dense-mismatch: a loss that expects one-hot rows gets class indices, or the reverse.

Why it matters: The loss call stops with two shapes, and its message does not say that there are two losses with almost
the same name.
Evidence: The shape and the values of the targets compared with what the loss expects; the other loss works.
Error: `Arguments … and … must have the same rank`
Error: `Arguments … and … must have the same shape`
Error: `Shapes … and … are incompatible`
Error: `must be equal to output's shape except for the last dimension`
Error: `must have rank (ndim)`
Error: `must have the same shape up until the last dimension`
Error: `logits and labels must have the same first dimension`
Fix (safe): Use the other loss (sparse_categorical_crossentropy for indices, categorical_crossentropy for one-hot rows).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from trainwright.core import Call, Finding, Fix, Number, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.places import loss_place, rename_loss
from trainwright.stages import BatchFacts, LossCall, LossFacts, SetupFacts

SPARSE, DENSE, BINARY = "sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy"


@rule("TW406", Severity.ERROR)
def sparse_dense_mismatch(loss: LossFacts, setup: SetupFacts, batch: BatchFacts | None = None) -> Iterator[Finding]:
    """Targets in the other form than the loss expects, in training or only in the evaluation."""
    call = next((c for c in loss.calls if _other(c)), None)
    if call is not None:
        yield _in_training(call, loss, setup)
    elif loss.evaluation_call is not None and _other(loss.evaluation_call) and batch and batch.label_key:
        yield _in_evaluation(loss.evaluation_call, batch.label_key, setup)


def _in_training(call: LossCall, loss: LossFacts, setup: SetupFacts) -> Finding:
    other, where = _other(call), loss_place(loss, setup)
    return Finding(
        message=_message(call),
        measured=_measured(call),
        where=where,
        proof=Proof(f"the loss raised {call.failure}") if call.failure else None,
        repair=_exchange(call.own_name, other),
        fix=Fix(does=f"use {other}", safety=Safety.SAFE, edits=rename_loss(call.own_name, other, where, setup)),
    )


def _in_evaluation(call: LossCall, label: str, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"{_message(call)} in the evaluation; in training the targets have the form that it expects",
        measured=_measured(call),
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"the loss of an evaluation batch raised {call.failure}") if call.failure else None,
        repair=_reform(label, call.inputs.shape[-1] if _other(call) == SPARSE else 0),
        fix=Fix(does="use labels of the same form in the evaluation as in training", safety=Safety.SAFE),
    )


def _message(call: LossCall) -> str:
    scores, targets, is_rows = call.inputs.shape, call.targets.shape, _other(call) == DENSE
    what = f"one-hot rows {targets}" if is_rows else f"class indices {targets}"
    takes = "class indices" if is_rows else f"a row of {scores[-1]} numbers for each label"
    return f"{call.own_name} expects {takes}, but gets {what} for outputs {scores}"


def _measured(call: LossCall) -> dict[str, Number]:
    return {
        "outputs": str(call.inputs.shape),
        "targets": str(call.targets.shape),
        "loss": call.own_name,
        "fitting_loss": _other(call),
    }


def _other(call: LossCall) -> str:
    """The loss that takes such targets; empty if the present loss does."""
    scores, targets = call.inputs.shape, call.targets.shape
    if len(scores) < 2 or scores[-1] < 2:
        return ""
    if call.own_name == SPARSE and targets == scores and _shares(call):
        return DENSE
    if call.own_name in (DENSE, BINARY) and targets in (scores[:-1], (*scores[:-1], 1)) and _indices(call):
        return SPARSE if call.own_name == DENSE or (call.largest_target or 0) > 1 else ""
    return ""


def _shares(call: LossCall) -> bool:
    low, high = call.targets.minimum, call.targets.maximum
    return low is not None and high is not None and low >= 0 and high <= 1


def _indices(call: LossCall) -> bool:
    """Whether all targets are nonnegative whole numbers."""
    whole = all(v == int(v) for v in call.target_values) if call.target_values else call.targets.is_integer
    return whole and (call.smallest_target or 0) >= 0


def _exchange(own: str, other: str) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(own=other) if call["own"] == own else call

    return Repair(f"compute {other} instead", Seam.LOSS, change)


def _reform(label: str, width: int) -> Repair:
    """Turn the evaluation's class indices into one-hot rows of this width; with width 0, the reverse."""

    def of(row: Mapping[str, Any], number: int) -> dict[str, Any]:
        given = np.asarray(row[label])
        return {**row, label: np.eye(width, dtype="float32")[int(given.item())] if width else given.argmax()}

    def change(call: Call) -> Call:
        return call.replace(eval_dataset=call.tensors.change_rows(call.part("eval_dataset"), of))

    return Repair("convert the evaluation's labels to the form of the training labels", Seam.TRAINER, change)
