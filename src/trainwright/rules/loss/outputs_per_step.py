"""TW426 outputs-per-step: the model has an output per time step or image position, but each row has one target.

Why it matters: The loss stops, or compares the row's target with every step: the model mostly learns to answer before
it has seen enough.
Evidence: The shapes of the model's output and of the targets. If every step's output is compared with the row's one
target without an error, training on the last step alone works clearly better, on three seeds.
Error: `The size of tensor a … must match the size of tensor b`
Error: `required broadcastable shapes`
Error: `Incompatible shapes for broadcasting`
Error: `Arguments `target` and `output` must have the same shape`
Fix (unsafe): Give the loss the output of the last step; flatten or pool the positions of an image.
"""

from __future__ import annotations

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
from trainwright.rules.shapes import ELEMENTWISE, Misfit, is_per_step, measured_of, message_of, misfitting, proof_of
from trainwright.stages import ForwardFacts, LossCall, LossFacts, SetupFacts

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
            fix=Fix(does=_LAST, safety=Safety.UNSAFE),
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
        fix=Fix(does=_POOLED, safety=Safety.MANUAL) if is_image else Fix(does=_LAST, safety=Safety.UNSAFE),
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
        fix=Fix(does=_LAST, safety=Safety.UNSAFE),
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
