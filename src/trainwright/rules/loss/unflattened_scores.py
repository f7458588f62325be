"""TW427 unflattened-scores: the scores have extra size-1 dimensions after the class dimension, left by a pooling layer.

Why it matters: The loss takes the extra dimensions for positions in an image, expects a label for each, and stops.
Evidence: The shape of the scores; without these dimensions there is one row of scores per label, and the loss
succeeds.
Fix (safe): Flatten the output of the pooling layer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.shapes import Misfit, misfitting
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts


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
        fix=Fix(
            does="flatten the outputs: a Flatten layer behind the pooling, or outputs.flatten(1)", safety=Safety.SAFE
        ),
    )
