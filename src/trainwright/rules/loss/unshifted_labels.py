"""TW463 unshifted-labels: each target is the input token at the same position, and the model may copy it.

Why it matters: A language model is to predict the next token. Here it only has to repeat the one that it sees: the loss
falls to zero within a few steps, and what it generates repeats its last token for ever.
Evidence: Every target of the loss equals the input token at its position, and outputs do not depend on later tokens, as
in a language model.
Fix (unsafe): Shift them against each other: inputs tokens[:, :-1], targets tokens[:, 1:].
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts

# Outputs that depend on later tokens belong to an autoencoder or a masked model; sums in another order differ by 1e-6.
CAUSAL_WITHIN = 1e-3


@rule("TW463", Severity.ERROR, raises=False)
def unshifted_labels(loss: LossFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss of a causal model against its own input tokens."""
    leak = forward.future_leak
    if loss.token_offset != 0 or leak is None or leak > CAUSAL_WITHIN or loss.call is None:
        return
    yield Finding(
        message="each target is the input token at the same position instead of the next one: the model only has to repeat "
        "what it sees",
        measured={"offset": 0, "targets": str(loss.call.targets.shape)},
        where=loss.call.at or setup.place(Role.COLLATOR, Role.TRAIN_DATASET_MADE, Role.MODEL),
        proof=Proof(
            "every target equals the input token at its position, and outputs do not change when only later tokens do"
        ),
        fix=Fix(
            does="shift them against each other: give the model tokens[:, :-1] and the loss tokens[:, 1:]",
            safety=Safety.UNSAFE,
        ),
    )
