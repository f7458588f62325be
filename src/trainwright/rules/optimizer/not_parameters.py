"""TW617 not-parameters: an optimizer is given a model or a method instead of parameters.

Why it matters: The script stops with `'…' object is not iterable`, which names neither the optimizer nor its argument.
Evidence: The type of the optimizer's first argument.
Error: `'method' object is not iterable`
Fix (safe): Pass model.parameters().
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import SetupFacts


@rule("TW617", Severity.ERROR, foretells=Fate.STOPS)
def not_parameters(setup: SetupFacts) -> Iterator[Finding]:
    """A model, or a method that was not called, where an optimizer takes parameters."""
    found = setup.not_parameters
    if found is None or setup.failure is None:
        return
    what = "a method that is not called" if found.is_method else f"a model ({found.kind}), not its parameters"
    right = f"{found.expression}()" if found.is_method else f"{found.expression}.parameters()"
    yield Finding(
        message=f"the optimizer is given {found.expression}, which is {what}",
        measured={"given": found.expression, "type": found.kind},
        where=setup.failure.where,
        proof=Proof(f"{setup.failure}"),
        fix=Fix(does=f"pass {right}", safety=Safety.SAFE),
    )
