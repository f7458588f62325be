"""TW313 future-leak: a model trained to predict the next token can see it.

Why it matters: The loss falls to almost nothing because the model copies, and generated text is worthless.
Evidence: The loss's targets are the inputs shifted by one, and the output at earlier positions changes when only later
tokens change; the first call whose result does.
Fix (manual): Use a causal mask (is_causal=True, or a triangle of minus infinity; use_causal_mask=True in Keras), or
is_decoder=True in the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import ForwardFacts, SetupFacts

LEAKING_BEYOND = 1e-3  # of the output's scale; sums in another order differ by some 1e-6


@rule("TW313", Severity.ERROR)
def future_leak(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A next-token loss with outputs that depend on later tokens."""
    leak = forward.future_leak
    if leak is None or leak <= LEAKING_BEYOND or not forward.predicts_next_token:
        return
    origin = forward.future_from
    first = f", from {origin.operation} on" if origin else ""
    yield Finding(
        message=f"the model is trained to predict the next token, but its outputs change by {leak:.2g} of their scale when only later tokens change{first}",
        measured={"relative_change": leak, "operation": origin.operation if origin else ""},
        where=(origin.where if origin else None) or setup.place(Role.MODEL),
        proof=Proof("only tokens of the second half were changed, and outputs of the first half changed too"),
        fix=Fix(does=setup.words.causal_mask),
    )
