"""TW407 broadcast-loss: outputs and targets of different shapes were broadcast, pairing each row with every row.

Why it matters: (N, 1) outputs against (N,) targets give N x N differences and no error: the best the model can learn
is the mean of the targets.
Evidence: The two shapes at the loss call; with the shapes aligned, the loss has a different value. For a handwritten
loss: permuting the targets does not change it; with the targets reshaped, it does. For a loss inside library code:
over a few rows it equals the mean over all pairs of an output and a target.
Error: `The size of tensor a … must match the size of tensor b`
Error: `Using a target size … that is different to the input size`
Error: `Target size … must be the same as input size …`
Error: `required broadcastable shapes`
Error: `Incompatible shapes for broadcasting`
Error: `logits and labels must have the same shape`
Error: `Arguments `target` and `output` must have the same shape`
Fix (safe): Give both the same shape (squeeze(-1) the outputs, or unsqueeze(-1) the targets).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.shapes import (
    Misfit,
    advice,
    align,
    have_same_numbers,
    measured_of,
    message_of,
    misfitting,
    proof_of,
)
from trainwright.stages import CrossedTargets, ForwardFacts, LossCall, LossFacts, PairedLoss, SetupFacts


@rule("TW407", Severity.ERROR)
def broadcast_loss(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Iterator[Finding]:
    """An elementwise loss over more elements than either side has, or over incompatible shapes."""
    found = misfitting(loss, forward)
    if found is not None:
        if found.kind == Misfit.PAIRS:
            yield _in_call(found.call, loss, setup)
        return
    if loss.crossed is not None:
        yield _by_hand(loss.crossed, setup)
    if loss.paired is not None:
        yield _over_pairs(loss.paired, loss, setup)


def _in_call(call: LossCall, loss: LossFacts, setup: SetupFacts) -> Finding:
    """A library's loss function."""
    return Finding(
        message=message_of(call),
        measured=measured_of(call),
        where=call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(proof_of(call)),
        repair=align(call.function) if have_same_numbers(call) else None,
        fix=Fix(does=advice(call.inputs.shape, call.targets.shape), safety=Safety.SAFE),
    )


def _by_hand(crossed: CrossedTargets, setup: SetupFacts) -> Finding:
    """A handwritten loss that does not change when targets are permuted between rows."""
    shape, aligned, rows = crossed.shape, crossed.aligned_shape, crossed.shape[0]
    now, in_shape = f"{crossed.value:.4g}", f"{crossed.aligned_value:.4g}"
    values = f": {now}, and {in_shape} with the targets as {aligned}" if now != in_shape else ""
    return Finding(
        message=f"the loss of targets {shape} compares {rows * rows:,} pairs, for {rows} rows{values}",
        measured={
            "targets": str(shape),
            "aligned": str(aligned),
            "pairs": rows * rows,
            "loss": crossed.value,
            "aligned_loss": crossed.aligned_value,
        },
        where=crossed.where or setup.place(Role.COMPUTE_LOSS, Role.TRAIN_STEP, Role.LOSS, Role.MODEL),
        proof=Proof(
            f"with the targets permuted between rows the loss is {crossed.exchanged_value:.6g}, and before it was "
            f"{crossed.value:.6g}: each output is compared with the targets of all rows; as {aligned} their order matters"
        ),
        repair=Repair("give the targets the outputs' shape", Seam.BATCH, _reshape(aligned[1:]))
        if crossed.where is None
        else Repair("give the targets the outputs' shape", Seam.PAIRING, _reshape_pair(shape, aligned)),
        fix=Fix(does=f"give outputs and targets the same shape in the loss: targets as {aligned}", safety=Safety.SAFE),
    )


def _over_pairs(paired: PairedLoss, loss: LossFacts, setup: SetupFacts) -> Finding:
    """A user-defined loss of which only the values are visible."""
    rows = paired.rows
    return Finding(
        message=f"the loss compares each output with the targets of all rows: for {rows} rows it is {paired.value:.4g}, the mean "
        f"over all {rows * rows} pairs; row by row it is {paired.by_row:.4g}",
        measured={"rows": rows, "pairs": rows * rows, "loss": paired.value, "loss_by_row": paired.by_row},
        where=loss.at or setup.place(Role.LOSS, Role.MODEL),
        proof=Proof(
            f"the loss of {rows} rows is the mean of the {rows * rows} losses of single outputs and targets, to rounding"
        ),
        fix=Fix(does="give both sides one shape within the loss: y_true = ops.reshape(y_true, ops.shape(y_pred))"),
    )


def _reshape(rest: tuple[int, ...]) -> Callable[[Call], Call]:
    def change(call: Call) -> Call:
        return call.replace(y=call.tensors.reshape(call["y"], (-1, *rest)))

    return change


def _reshape_pair(targets: tuple[int, ...], outputs: tuple[int, ...]) -> Callable[[Call], Call]:
    def change(call: Call) -> Call:
        left, right = call["left"], call["right"]
        if len(left.shape) == len(targets) and len(right.shape) == len(outputs):
            return call.replace(left=call.tensors.reshape(left, tuple(right.shape)))
        if len(right.shape) == len(targets) and len(left.shape) == len(outputs):
            return call.replace(right=call.tensors.reshape(right, tuple(left.shape)))
        return call

    return change
