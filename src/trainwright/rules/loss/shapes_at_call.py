"""A call of the loss with outputs and targets that do not belong together by their shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from trainwright.core import (
    Call,
    Diagnosis,
    Finding,
    Fix,
    Place,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    Severity,
    Trial,
    rule,
)
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.shapes import (
    Misfit,
    advice,
    align,
    have_same_numbers,
    is_per_step,
    measured_of,
    message_of,
    misfitting,
    proof_of,
)
from trainwright.stages import CrossedTargets, ForwardFacts, LossCall, LossFacts, PairedLoss, SetupFacts
from trainwright.stages.loss import CLASS_LOSSES, ELEMENTWISE


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
        fix=safe(advice(call.inputs.shape, call.targets.shape)),
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
        fix=safe(f"give outputs and targets the same shape in the loss: targets as {aligned}"),
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


_POOLED = "put a Flatten or a global pooling layer between the last convolution and the head"
_LAST = "give the loss the output of the last step (return_sequences=False, or outputs[:, -1])"


@rule("TW426", Severity.ERROR, after="TW407")
def outputs_per_step(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Diagnosis:
    """Outputs with an axis of steps, compared with targets that lack it."""
    found = misfitting(loss, forward)
    if found is None:
        yield from _repeated_targets(loss, setup, forward)
    elif found.kind == Misfit.EACH_STEP:
        yield _each_step(found.call, loss, setup, forward)
    elif found.kind == Misfit.EACH_STEP_PAIRED:
        call = found.call
        yield Finding(
            message=message_of(call),
            measured=measured_of(call),
            where=_head(forward) or call.at or loss.at or setup.place(Role.MODEL),
            proof=Proof(proof_of(call)),
            repair=_last_step(call.function),
            fix=unsafe(_LAST),
        )


def _each_step(call: LossCall, loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None) -> Finding:
    """A loss that raised because there is an output per step or image position, but one target per row."""
    scores = forward.output.shape if forward and forward.output else call.inputs.shape
    steps, is_image = prod(scores[1:-1]), len(scores) == 4
    of = "positions in an image" if is_image else "steps of a sequence"
    return Finding(
        message=f"{call.own_name or call.function} raised because it got outputs for all {steps} {of} {scores}, but one target per row "
        f"{call.targets.shape}",
        measured={"outputs": str(scores), "targets": str(call.targets.shape), "steps": steps},
        where=_head(forward) or call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(
            f"for {scores[0]} rows there are {scores[0] * steps} outputs and {scores[0]} targets; {call.failure}"
        ),
        repair=None if is_image else _last_step(call.function),
        fix=Fix(does=_POOLED, safety=Safety.MANUAL) if is_image else unsafe(_LAST),
    )


def _repeated_targets(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None) -> Diagnosis:
    """One target per row compared with the outputs of all steps, although training on the last step works better."""
    call = next((c for c in loss.calls if c.function in ELEMENTWISE and not c.failure and is_per_step(c)), None)
    if (
        call is None
        or forward is None
        or forward.output is None
        or len(forward.output.shape) != 3
        or forward.output.shape[2] != 1
    ):
        return
    outcome = yield Trial(change=_last_step(call.function), steps=16)
    if not outcome.clearly_better:
        return
    rows, steps = call.inputs.shape[:2]
    yield Finding(
        message=f"{call.function} compares the outputs at all {steps} steps of a sequence {forward.output.shape} with one "
        f"target per row: {rows * steps:,} pairs for {rows} rows",
        measured={"outputs": str(forward.output.shape), "targets": str(call.targets.shape), "pairs": rows * steps},
        where=_head(forward) or call.at or loss.at or setup.place(Role.MODEL),
        proof=outcome,
        repair=_last_step(call.function),
        fix=unsafe(_LAST),
    )


def _head(forward: ForwardFacts | None) -> Place | None:
    """The line of the last layer, not counting the head, that returned a sequence of vectors."""
    last = forward.head.name if forward and forward.head else ""
    several = [
        m.where
        for m in (forward.modules if forward else ())
        if m.leaf and m.output and len(m.output.shape) in (3, 4) and m.output.shape[-1] > 1 and m.name != last
    ]
    return several[-1] if several else None


def _last_step(function: str) -> Repair:
    def change(call: Call) -> Call:
        scores = call["logits"]
        if call["function"] != function or len(scores.shape) != 3:
            return call
        return call.replace(logits=scores[:, -1])

    return Repair("compare the last step's output alone", Seam.LOSS, change)


@rule("TW427", Severity.ERROR, after="TW407")
def unflattened_scores(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Iterator[Finding]:
    """Scores (N, C, 1, …) from global pooling, for which a class loss expects targets (N, 1, …)."""
    found = misfitting(loss, forward)
    if found is None or found.kind != Misfit.SPARE_AXES:
        return
    call = found.call
    scores, targets, function = call.inputs.shape, call.targets.shape, call.function

    def change(call: Call) -> Call:
        if call["function"] != function or tuple(call["logits"].shape[2:]) != scores[2:]:
            return call
        return call.replace(logits=call.tensors.reshape(call["logits"], (-1, scores[1])))

    yield Finding(
        message=f"{function} of outputs {scores} and targets {targets} raised: the scores have size-1 dimensions after the {scores[1]} classes",
        measured={"outputs": str(scores), "targets": str(targets), "classes": scores[1]},
        where=call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(
            f"as {scores[:2]} the outputs have a row of scores for each of the {scores[0]} targets; {call.failure}"
        ),
        repair=Repair("remove the scores' size-1 dimensions", Seam.LOSS, change),
        fix=safe("flatten the outputs: a Flatten layer behind the pooling, or outputs.flatten(1)"),
    )


@rule("TW428", Severity.ERROR, after="TW407")
def column_labels(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Iterator[Finding]:
    """Labels (N, 1) for scores (N, C)."""
    found = misfitting(loss, forward)
    if found is None or found.kind != Misfit.COLUMN:
        return
    call = found.call
    yield Finding(
        message=message_of(call),
        measured=measured_of(call),
        where=call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(proof_of(call)),
        repair=align(call.function),
        fix=safe("write targets.squeeze(-1) in the loss"),
    )


@rule("TW462", Severity.ERROR)
def swapped_loss_arguments(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A class loss that raised on labels in place of scores."""
    call = next((c for c in loss.calls if c.failure is not None and _is_swapped(c)), None)
    if call is None:
        return
    yield Finding(
        message=f"{call.function} gets {call.inputs.dtype} numbers {call.inputs.shape} where it expects scores, and "
        f"{call.targets.dtype} numbers {call.targets.shape} where it expects labels",
        measured={"first": str(call.inputs.shape), "second": str(call.targets.shape)},
        where=call.at or setup.place(Role.LOSS, Role.MODEL),
        proof=Proof(f"the call raised {call.failure}"),
        repair=_swap(call),
        fix=safe("pass the model's output first, then the labels"),
    )


def _is_swapped(call: LossCall) -> bool:
    """Whether the first argument has the form of labels, and the second that of their scores."""
    first, second = call.inputs, call.targets
    labels = "int" in first.dtype and "float" in second.dtype and len(second.shape) == len(first.shape) + 1
    return call.function in CLASS_LOSSES and labels and (second.shape[0], *second.shape[2:]) == first.shape


def _swap(seen: LossCall) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] != seen.function or tuple(call["logits"].shape) != seen.inputs.shape:
            return call
        return call.replace(logits=call["targets"], targets=call["logits"])

    return Repair(f"exchange the arguments of {seen.function}", Seam.LOSS, change)
