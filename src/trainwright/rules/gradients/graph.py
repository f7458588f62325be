"""The graph between the weights and the loss: cut, changed, or run through twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Call, Fate, Finding, Fix, Place, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.stages import CutOff, ForwardFacts, GradientFacts, KeptTensor, LossFacts, SetupFacts


@rule("TW502", Severity.ERROR, foretells=Fate.STANDS_STILL)
def severed_graph(gradients: GradientFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Trainable parameters that get no gradient because user code cuts the graph."""
    without = {g.name for g in gradients.without}
    # The rule no-gradient covers a missing backward pass and a loss that reaches no parameter.
    backward = bool(gradients.backwards) or any(g.norm for g in gradients.gradients)
    if gradients.failure is not None or not without or not backward or not gradients.loss_requires_grad:
        return
    if gradients.wiped or gradients.wiped_passes:  # what arrived was cleared: of that wiped-accumulation speaks
        return
    loaded = {p.name for p in forward.parameters if p.freshly_initialised is False}
    for cut in gradients.cuts:
        lost = sorted(without & set(cut.upstream))
        if not lost or (cut.operation == "no_grad" and loaded.issuperset(lost)):
            continue
        yield _severed(cut, lost, gradients, setup)
        return


def _severed(cut: CutOff, lost: list[str], gradients: GradientFacts, setup: SetupFacts) -> Finding:
    total = len(gradients.gradients)
    return Finding(
        message=f"{cut.operation} detaches a tensor from the graph: {len(lost)} of {total} trainable parameters behind it "
        f"get no gradient ({_some(lost)})",
        measured={"without_gradient": len(lost), "trainable": total, "operation": cut.operation, "first": lost[0]},
        where=cut.where or setup.place(Role.COMPUTE_LOSS, Role.MODEL, Role.TRAINER),
        proof=Proof(
            f"the tensor given to {cut.operation} was computed from them, and after backward their gradient is None"
        ),
        repair=cut.left_out(),
        fix=unsafe(f"keep the tensor in the graph (no {cut.operation} there)"),
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")


_WITHOUT_GRAPH = "does not require grad"
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
    if failure is None and second is not None and _WITHOUT_GRAPH in second.message:
        yield _in_second_step(gradients, setup)
        return
    raised = failure is not None and _WITHOUT_GRAPH in failure.message
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


_RUN_AGAIN = ("backward through the graph a second time", "modified by an inplace operation")


@rule("TW511", Severity.ERROR)
def repeated_backward(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """State that carries a graph from one batch to the next, or two backward passes of one loss."""
    second = gradients.second_failure
    if second is not None and gradients.kept and any(m in second.message for m in _RUN_AGAIN):
        yield _kept(gradients, setup)
    elif gradients.failure is not None and _RUN_AGAIN[0] in gradients.failure.message:
        own = [place for place in gradients.backwards if place is not None]
        yield _twice(len(gradients.backwards), own[0] if own else gradients.failure.where, setup)


def _kept(gradients: GradientFacts, setup: SetupFacts) -> Finding:
    # The framework itself may keep an attribute of the trainer, so attributes of the model come first.
    kept = sorted(gradients.kept, key=lambda k: (k.where is None, k.of_trainer))[0]
    return Finding(
        message=f"{kept.name} holds part of the first step's graph, and the second step's backward runs through it again",
        measured={"attribute": kept.name, "kept": len(gradients.kept)},
        where=kept.where or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(f"step 1 completed; step 2 raised {gradients.second_failure}"),
        repair=Repair("detach the tensors that the model keeps, before each batch", Seam.FORWARD, _detach),
        fix=safe(f"keep it detached: {_detached(kept)}"),
    )


def _written(name: str) -> str:
    """An attribute as its class's code writes it; a loop's variable by its name."""
    owner, _, attribute = name.rpartition(".")
    return f"self.{attribute}" if owner else attribute


def _detached(kept: KeptTensor) -> str:
    name = _written(kept.name)
    return f"{name} = {name}.detach()"


def _detach(call: Call) -> Call:
    call.tensors.detach_kept(call["model"])
    return call.replace(inputs=call.tensors.detached(call["inputs"]))


def _twice(calls: int, place: Place | None, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"backward was called {calls} times on the same graph",
        measured={"backward_calls": calls},
        where=place or setup.place(Role.COMPUTE_LOSS, Role.TRAINING_STEP, Role.TRAINER),
        proof=Proof(f"{calls} calls of backward in one step, and the last one raised"),
        fix=unsafe(
            "call backward once for each loss"
            + (f"; {setup.words.trainer} calls it itself" if setup.automatic_steps else "")
        ),
    )


@rule("TW512", Severity.ERROR)
def in_place_change(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A backward pass that needs a value that user code changed in place."""
    failure = gradients.failure
    if failure is None or "modified by an inplace operation" not in failure.message:
        return
    shape = _shape(failure.message)
    fitting = [c for c in gradients.in_place if c.shape == shape]
    calls = fitting or list(gradients.in_place)
    operation = calls[-1].operation if calls else "an in-place call"
    needed = f", whose value the backward of {gradients.anomaly} needs" if gradients.anomaly else ""
    yield Finding(
        message=f"{operation} changes a tensor of shape {shape or 'unknown'} in place{needed}",
        measured={"operation": operation, "shape": str(shape), "needed_by": gradients.anomaly or "unknown"},
        where=(calls[-1].where if calls else None) or gradients.anomaly_at or setup.place(Role.MODEL),
        proof=Proof(f"backward raised {failure}"[:300]),
        fix=safe("make a new tensor instead of changing this one (x = x + y for x += y)"),
    )


def _shape(message: str) -> tuple[int, ...] | None:
    found = re.search(r"Tensor \[([\d, ]*)\]", message)
    return tuple(int(n) for n in found.group(1).replace(" ", "").split(",") if n) if found else None
