"""TW502 severed-graph: user code detaches a tensor from the graph, so the parameters behind it get no gradient.

Why it matters: A part of the model never learns, without an error; the rest adapts to its random features.
Evidence: Trainable parameters that were used in the forward pass but got no gradient, and the call between them and the
loss that cut them off. A branch that nothing depends on is not reported, nor is a loaded encoder under no_grad.
Error: `Gradients do not exist for variables`
Fix (unsafe): Keep the tensor in the graph. If the part is meant to stay unchanged, set its requires_grad to False.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import CutOff, ForwardFacts, GradientFacts, SetupFacts


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
        yield _finding(cut, lost, gradients, setup)
        return


def _finding(cut: CutOff, lost: list[str], gradients: GradientFacts, setup: SetupFacts) -> Finding:
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
        fix=Fix(does=f"keep the tensor in the graph (no {cut.operation} there)", safety=Safety.UNSAFE),
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")
