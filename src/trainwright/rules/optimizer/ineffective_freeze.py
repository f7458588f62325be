"""TW604 ineffective-freeze: an assignment looks as if it froze layers, but freezes nothing.

Why it matters: The layers are still trained; a backbone that was meant to stay fixed changes with every step.
Evidence: The attribute that was set (a layer has no requires_grad, and a parameter no require_grad), and the parameters
below it that still require a gradient; or a step of the compiled training function that changes them.
Fix (safe): Call layer.requires_grad_(False), or set requires_grad on each of layer.parameters(). In Keras, compile
again after changing `layer.trainable`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Safety, Seam, Severity, rule
from trainwright.stages import IneffectiveFreeze, SetupFacts


@rule("TW604", Severity.WARNING)
def ineffective_freeze(setup: SetupFacts) -> Iterator[Finding]:
    """An attribute of a layer, or a misspelled attribute of a parameter, that was set to False."""
    for one in setup.ineffective_freezes:
        if one.after_compile:
            yield _too_late(one)
            continue
        owner = f"layers ({one.kind})" if one.on_modules else "parameters"
        yield Finding(
            message=f"{one.attribute} = False was set on {one.objects} {owner}, which freezes nothing: "
            f"{len(one.parameters)} parameters there still require a gradient",
            measured={"attribute": one.attribute, "objects": one.objects, "still_trainable": len(one.parameters)},
            where=one.where,
            proof=Proof(f"{one.parameters[0]}.requires_grad is True when training starts"),
            repair=_freeze(one),
            fix=Fix(
                does="call requires_grad_(False) on the layer" if one.on_modules else "write requires_grad = False",
                safety=Safety.SAFE,
            ),
        )


def _too_late(one: IneffectiveFreeze) -> Finding:
    return Finding(
        message=f"{one.attribute} = False was set on a layer ({one.kind}) after the training step was compiled, and has no effect "
        f"on it: one step changes {len(one.parameters)} of its weights",
        measured={"attribute": one.attribute, "objects": one.objects, "changed_weights": len(one.parameters)},
        where=one.where,
        proof=Proof(f"{one.parameters[0]} differs after one step of the compiled training function"),
        fix=Fix(does="call compile again after the line that freezes", safety=Safety.SAFE),
    )


def _freeze(one: IneffectiveFreeze) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.freeze(call["model"], one.parameters)
        return call

    return Repair(f"freeze the {len(one.parameters)} parameters", Seam.TRAINER, change)
