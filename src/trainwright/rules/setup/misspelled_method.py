"""TW008 misspelled-method: a method's name is a misspelling of one that the framework calls.

Why it matters: Python accepts any name, so nothing reports the typo. Without `__init__` a model has no layers, without
`forward` its first call raises NotImplementedError, and a misspelled `validation_step` or `compute_loss` never runs.
Evidence: The class has the correctly spelled method only from the framework, or not at all, and no line of the script
mentions the misspelled one.
Error: `optimizer got an empty parameter list`
Error: `is missing the required "forward" function`
Error: `Subclasses of Dataset should implement __getitem__`
Error: `does not have a `call()` method implemented`
Fix (safe): Write the name as the framework does.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, RenameFunction, Safety, Severity, rule
from trainwright.stages import MisspelledMethod, SetupFacts


@rule("TW008", Severity.ERROR, raises=False, foretells=Fate.STOPS)
def misspelled_method(setup: SetupFacts) -> Iterator[Finding]:
    """Methods that are never called, in classes that lack the method of nearly the same name."""
    for one in setup.misspelled:
        yield _finding(one)


def _finding(one: MisspelledMethod) -> Finding:
    instead = f"so that of {one.base} runs" if one.inherited else f"which a {one.base} needs"
    return Finding(
        message=f"{one.owner} defines {one.written}, but not {one.meant}, {instead}",
        measured={"class": one.owner, "written": one.written, "meant": one.meant},
        where=one.where,
        proof=Proof(f"no line of the script calls {one.written}, and {one.base} does not know it"),
        fix=Fix(
            does=f"write def {one.meant}(…) instead of def {one.written}(…)",
            safety=Safety.SAFE,
            edits=(RenameFunction(one.where.file, one.where.line, one.written, one.meant),),
        ),
    )
