"""TW318 rebuilt-layers: the model builds layers each time it is called, so their weights are never trained.

Why it matters: TensorFlow stops at the first step with a message about variables and functions. On torch, training
continues with a part of the model that is replaced at each step; on JAX, with a part that never learns.
Evidence: Two calls of the model on one batch use different layers at the same line.
Error: `tf.function only supports singleton tf.Variables created on the first call`
Fix (safe): Build the layers in __init__, as attributes of the model, and call them in call.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import ForwardFacts, SetupFacts


@rule("TW318", Severity.ERROR)
def rebuilt_layers(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Layers with weights that the model's second call no longer uses."""
    if not forward.rebuilt:
        return
    first, count = forward.rebuilt[0], len(forward.rebuilt)
    weights = sum(one.parameters for one in forward.rebuilt)
    what = f"a {first.kind} layer" if count == 1 else f"{count} layers ({first.kind} first)"
    yield Finding(
        message=f"each call of the model builds {what} again: {weights:,} weights that stay random, "
        "because no optimizer holds them",
        measured={"layers": count, "parameters": weights, "kind": first.kind},
        where=first.where or setup.place(Role.CALL, Role.MODEL),
        proof=Proof("called twice on one batch, the model used different layers at the same line"),
        fix=Fix(does=f"build it in __init__ (self.head = layers.{first.kind}(…)), and call that", safety=Safety.SAFE),
    )
