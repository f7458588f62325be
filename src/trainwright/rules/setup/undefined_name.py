"""TW013 undefined-name: the script uses a name that nothing sets.

Why it matters: A branch that rarely runs (a log line at every hundredth step, what comes after the training) ends the run
with NameError when it is reached, perhaps after hours.
Evidence: No line of the script sets the name, imports it or defines it, and it is none of Python's own. Scripts that run
other code with `exec`, or import with a star, are left alone.
Error: `name '…' is not defined`
Fix (manual): Set the name before the line, or write the name that is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, RenameName, Safety, Severity, rule
from trainwright.stages import SetupFacts, UndefinedName


@rule("TW013", Severity.WARNING, raises=False)
def undefined_name(setup: SetupFacts) -> Iterator[Finding]:
    """Names that the script uses, in lines that have not run, and sets nowhere."""
    for one in setup.undefined:
        yield Finding(
            message=f"no line sets {one.name}: this one will raise NameError once it is reached",
            measured={"name": one.name},
            where=one.where,
            proof=Proof("the script was read: nothing sets, imports or defines the name"),
            fix=_fix(one),
        )


def _fix(one: UndefinedName) -> Fix:
    if not one.meant:
        return Fix(does=f"set {one.name} before this line")
    edit = RenameName(one.where.file, one.where.line, one.name, one.meant)
    return Fix(does=f"write {one.meant} for {one.name}", safety=Safety.UNSAFE, edits=(edit,))
