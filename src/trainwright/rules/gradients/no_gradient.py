"""TW503 no-gradient: the loss is not connected to any trainable parameter, so backward raises; or backward never runs.

Why it matters: Training stops at its first step, with a message that gives neither the line nor the reason. Without a
backward pass, training continues and learns nothing.
Evidence: Trainable parameters exist, the loss requires no gradient, and the calls that detached it from the graph. Or a
step that completed without a backward pass. Or a first step that completes, but freezes parameters and does not
unfreeze them, so that the second step raises an error.
Error: `element 0 of tensors does not require grad and does not have a grad_fn`
Error: `No gradients provided for any variable`
Fix (unsafe): Keep the tensor in the graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import CutOff, GradientFacts, LossFacts, SetupFacts

_MESSAGE = "does not require grad"
# Functions without a gradient; nothing can reconnect their results to the graph.
_IN_STEPS = ("argmax()", "argmin()", "round()", "sign()", "floor()", "ceil()")


@rule("TW503", Severity.ERROR, foretells=Fate.STANDS_STILL)
def no_gradient(gradients: GradientFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """A loss without a graph, although there are trainable parameters (a fully frozen model is another fault)."""
    failure, count = gradients.failure, len(gradients.gradients)
    if failure is None and count and not gradients.backwards:
        yield from _never_run(gradients, setup)
        return
    second = gradients.second_failure
    if failure is None and second is not None and _MESSAGE in second.message:
        yield _in_second_step(gradients, setup)
        return
    raised = failure is not None and _MESSAGE in failure.message
    if not count or not (raised or (failure is None and not gradients.loss_requires_grad)):
        return
    # Among the cuts that lost the most, the last is nearest to the loss. Keras does not record their order: there, a
    # call that cuts on purpose comes before one in steps, which may be a metric's.
    cut = max(
        reversed([c for c in gradients.cuts if c.upstream]),
        key=lambda c: (len(c.upstream), c.operation == "stop_gradient()"),
        default=None,
    )
    why, does = _told(cut)
    kept = cut is not None and cut.operation not in _IN_STEPS
    seen = (
        f"backward raised {failure}; {count} parameters require a gradient"
        if raised
        else f"a step gives none of the {count} trainable parameters a gradient"
    )
    yield Finding(
        message=f"the loss depends on none of the {count} trainable parameters: {why}",
        measured={"trainable": count, "operation": cut.operation if cut else "none"},
        where=(cut.where if cut else None)
        or (loss.at if loss else None)
        or (failure.where if failure else None)
        or setup.place(Role.COMPUTE_LOSS, Role.LOSS, Role.MODEL, Role.TRAINER),
        proof=Proof(seen),
        repair=cut.left_out() if cut and kept else None,
        fix=Fix(does=does, safety=Safety.UNSAFE if kept else Safety.MANUAL),
    )


def _told(cut: CutOff | None) -> tuple[str, str]:
    """Why no gradient arrives, and what to do."""
    if cut is None:
        return "it was computed without any trainable parameter", "compute the loss from the model's output"
    if cut.operation in _IN_STEPS:
        return (
            f"the result of {cut.operation} is piecewise constant, so it has no gradient",
            f"compute the loss from the input of {cut.operation}; keep {cut.operation} for metrics",
        )
    return (f"{cut.operation} detached it from the graph", f"keep the tensor in the graph (no {cut.operation} there)")


def _never_run(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A step that runs no backward pass and leaves no gradient; gradients may also be computed by hand."""
    if any(g.norm for g in gradients.gradients):
        return
    count = len(gradients.gradients)
    yield Finding(
        message=f"a step completes without a backward pass: none of the {count} trainable parameters gets a gradient",
        measured={"trainable": count, "backwards": 0},
        where=setup.place(Role.TRAINING_STEP, Role.OPTIMIZER_STEP, Role.COMPUTE_LOSS, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof("backward was never called in the step, and every gradient is empty after it"),
        fix=Fix(does=setup.words.backward),
    )


def _in_second_step(gradients: GradientFacts, setup: SetupFacts) -> Finding:
    """A first step that leaves nothing trainable for the loss of the second step."""
    second = gradients.second_failure
    return Finding(
        message="the loss of the second step depends on no trainable parameter, and backward raises",
        measured={"trainable": len(gradients.gradients)},
        where=(second.where if second else None) or setup.place(Role.BACKWARD, Role.TRAINER),
        proof=Proof(f"step 1 completed; step 2 raised {second}"),
        fix=Fix(does="compute the loss of each step from trainable parameters; one that a step freezes stays frozen"),
    )
