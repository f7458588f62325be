"""TW406 sparse-dense-mismatch: class indices were given to a loss that takes one-hot rows, or the reverse.

Why it matters: the loss call stops with two shapes, and its message does not say that there are two losses of nearly
the same name.
Evidence: the shape and the values of the targets against what the loss takes; with the other loss it goes through.
Error: `Arguments … and … must have the same rank`
Error: `Arguments … and … must have the same shape`
Error: `Shapes … and … are incompatible`
Error: `must be equal to output's shape except for the last dimension`
Fix (safe): use the other loss (sparse_categorical_crossentropy for indices, categorical_crossentropy for one-hot rows).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.rules.places import loss_place, rename_loss
from trainwright.stages.loss import LossCall, LossFacts
from trainwright.stages.setup import SetupFacts

SPARSE, DENSE, BINARY = "sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy"


@rule("TW406", Severity.ERROR)
def sparse_dense_mismatch(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Targets of the other form than the loss takes."""
    found = next(((c, other) for c in loss.calls if (other := _other(c))), None)
    if found is None:
        return
    call, other = found
    scores, targets = call.inputs.shape, call.targets.shape
    is_rows = other == DENSE
    what = f"one-hot rows {targets}" if is_rows else f"class indices {targets}"
    takes = "class indices" if is_rows else f"a row of {scores[-1]} numbers for each label"
    where = loss_place(loss, setup)
    yield Finding(
        message=f"{call.own_name} takes {takes}, and is given {what} for outputs {scores}",
        measured={
            "outputs": str(scores),
            "targets": str(targets),
            "loss": call.own_name,
            "fitting_loss": other,
        },
        where=where,
        proof=Proof(f"the loss raised {call.failure}") if call.failure else None,
        repair=_exchange(call.own_name, other),
        fix=Fix(
            does=f"use {other}",
            safety=Safety.SAFE,
            edits=rename_loss(call.own_name, other, where, setup),
        ),
    )


def _other(call: LossCall) -> str:
    """The loss that takes such targets; empty where the one there is does."""
    scores, targets = call.inputs.shape, call.targets.shape
    if len(scores) < 2 or scores[-1] < 2:
        return ""
    if call.own_name == SPARSE and targets == scores and (call.targets_one_hot or _shares(call)):
        return DENSE
    if call.own_name in (DENSE, BINARY) and targets in (scores[:-1], (*scores[:-1], 1)) and _indices(call):
        return SPARSE if call.own_name == DENSE or (call.largest_target or 0) > 1 else ""
    return ""


def _shares(call: LossCall) -> bool:
    low, high = call.targets.minimum, call.targets.maximum
    return low is not None and high is not None and low >= 0 and high <= 1


def _indices(call: LossCall) -> bool:
    """Whether all targets are whole numbers from 0 on."""
    whole = all(v == int(v) for v in call.target_values) if call.target_values else call.targets.is_integer
    return whole and (call.smallest_target or 0) >= 0


def _exchange(own: str, other: str) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(own=other) if call["own"] == own else call

    return Repair(f"compute {other} instead", Seam.LOSS, change)
