"""TW511 repeated-backward: backward runs a second time through a graph that was already freed.

Why it matters: The second step raises an error. The message suggests retain_graph=True, which hides the fault and fills
the memory.
Evidence: The first step completed, the second raised an error, and an attribute holds part of the first step's graph;
or backward was called twice in one step.
Error: `Trying to backward through the graph a second time`
Fix (safe): Detach what is kept for the next batch, or remove the second backward.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Place, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import GradientFacts, KeptTensor, SetupFacts

_MESSAGES = ("backward through the graph a second time", "modified by an inplace operation")


@rule("TW511", Severity.ERROR)
def repeated_backward(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """State that carries a graph from one batch to the next, or two backward passes of one loss."""
    second = gradients.second_failure
    if second is not None and gradients.kept and any(m in second.message for m in _MESSAGES):
        yield _kept(gradients, setup)
    elif gradients.failure is not None and _MESSAGES[0] in gradients.failure.message:
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
        fix=Fix(does=f"keep it detached: {_detached(kept)}", safety=Safety.SAFE),
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
        fix=Fix(
            does="call backward once for each loss"
            + (f"; {setup.words.trainer} calls it itself" if setup.automatic_steps else ""),
            safety=Safety.UNSAFE,
        ),
    )
