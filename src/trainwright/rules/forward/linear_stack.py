"""TW326 linear-stack: several layers without an activation between them compute what a single linear layer can.

Why it matters: A product of matrices is a matrix. The model can only learn linear relations, however many layers it has, so
it ends at the accuracy of a linear model.
Evidence: Halfway between two rows of the batch, the output is halfway between theirs, for all rows, with the initial weights
and with perturbed ones. The hidden layers are as wide as the input or the output, so they are no deliberate bottleneck.
Fix (unsafe): Put an activation (ReLU, GELU) behind each layer but the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import ForwardFacts, LossFacts, ModuleFacts, SetupFacts


@rule("TW326", Severity.WARNING, raises=False)
def linear_stack(forward: ForwardFacts, loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A model of several layers whose output is an affine function of its input."""
    layers = [m for m in forward.modules if m.leaf and len(m.sizes) == 2]
    if not forward.affine or loss.failure is not None or len(layers) < 2 or not _is_chain(layers):
        return
    hidden = [m.sizes[1] for m in layers[:-1]]
    if min(hidden) < min(layers[0].sizes[0], layers[-1].sizes[1]):  # a bottleneck: as in PCA
        return
    sizes = " → ".join(str(n) for n in (layers[0].sizes[0], *hidden, layers[-1].sizes[1]))
    yield Finding(
        message=f"the model is a linear function of its input, although it has {len(layers)} layers ({sizes}): there is no "
        "activation between them",
        measured={"layers": len(layers), "widest": max(hidden)},
        where=layers[0].where or setup.place(Role.MODEL),
        proof=Proof(
            "halfway between two rows of the batch, the output is halfway between theirs, for all rows, with the initial "
            "weights and with perturbed ones"
        ),
        fix=Fix(does="put an activation (ReLU, GELU) behind each layer but the last", safety=Safety.UNSAFE),
    )


def _is_chain(layers: list[ModuleFacts]) -> bool:
    """Whether each layer takes what the one before it gives, possibly flattened, rather than the same input."""
    return all(
        right.sizes[0] % left.sizes[1] == 0 and left.sizes[1] != layers[-1].sizes[1] for left, right in pairwise(layers)
    )
