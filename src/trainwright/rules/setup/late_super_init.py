"""TW010 late-super-init: a model's constructor uses the object before it calls super().__init__().

Why it matters: The framework's constructor makes the tables in which layers are registered. Before that, an assigned
layer has no place to go, and the error names an internal attribute or the wrong class.
Evidence: The constructor's own lines: where it calls super().__init__(), if at all, and the line that failed before it.
Error: `before Module.__init__() call`
Error: `object has no attribute '_backward_hooks'`
Error: `object has no attribute '_parameters'`
Error: `object has no attribute '_modules'`
Error: `you forgot to call `super().__init__()``
Fix (safe): Make super().__init__() the first line of the constructor.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import SetupFacts


@rule("TW010", Severity.ERROR, foretells=Fate.STOPS)
def late_super_init(setup: SetupFacts) -> Iterator[Finding]:
    """A constructor without a call of super().__init__(), or with one too late."""
    found = setup.late_init
    if found is None or setup.failure is None:
        return
    if found.uncalled_at is not None:
        how = f"names super().__init__ on line {found.uncalled_at.line}, but does not call it: the parentheses are missing"
    elif found.called_at is not None:
        how = f"calls super().__init__() on line {found.called_at.line}, after it has set an attribute that needs it"
    else:
        how = "never calls super().__init__()"
    yield Finding(
        message=f"{found.owner}.__init__ {how}",
        measured={"class": found.owner},
        where=found.uncalled_at or found.where,
        proof=Proof(f"{setup.failure}"),
        fix=Fix(does=f"make super().__init__() the first line of {found.owner}.__init__", safety=Safety.SAFE),
    )
