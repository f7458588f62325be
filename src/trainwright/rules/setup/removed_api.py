"""TW002 removed-api: the script uses a name that the installed version of a library no longer has.

Why it matters: The script stops at its first lines, and the message does not say what to use instead.
Evidence: The installed module or class lacks the name. A table of removed names, or a similar name, suggests another.
Error: `cannot import name '…' from`
Error: `module '…' has no attribute`
Error: `module transformers has no attribute`
Error: `has no attribute encode_plus`
Error: `has no attribute batch_encode_plus`
Error: `No module named 'keras.…'`
Error: `No module named 'tensorflow.keras.…'`
Error: `object has no attribute 'fit_generator'`
Error: `object has no attribute 'predict_classes'`
Error: `object has no attribute 'predict_proba'`
Error: `object has no attribute 'lr'`
Fix (manual): Use the replacement, or install the version that the script was written for.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Safety, Severity, rule
from trainwright.frameworks.removed_names import filled, replacement
from trainwright.stages import MissingName, SetupFacts


@rule("TW002", Severity.ERROR, foretells=Fate.STOPS)
def removed_api(setup: SetupFacts) -> Iterator[Finding]:
    """A name that a library no longer has, or never had."""
    missing = setup.missing
    if missing is None:
        return
    known = replacement(missing.owner, missing.name, package=missing.package, of_class=missing.of_class)
    if missing.of_class and known is None:
        return  # any object can lack an attribute: that has nothing to do with versions
    kind = missing.owner.split(" ")[0]
    inner = kind if missing.of_class else missing.owner.removeprefix(missing.package).lstrip(".")
    full = f"{inner}.{missing.name}".lstrip(".")
    near = f"; it has {' and '.join(missing.near)}" if missing.near and (known is None or "{bare}" in known) else ""
    asker = f", which {missing.wanted_by} uses" if missing.wanted_by else ""
    yield Finding(
        message=f"{missing.library} has no {full}{asker}{near}",
        measured={"name": full, "library": missing.library},
        where=missing.where,
        proof=Proof(str(setup.failure)),
        fix=_fix(missing, known),
    )


def _fix(missing: MissingName, known: str | None) -> Fix:
    if missing.wanted_by:
        package = missing.wanted_by.split(" ")[0]
        return Fix(does=f"update {package}, which was written for another version of {missing.package}")
    if known is not None:
        return Fix(does=filled(known, missing.name, next(iter(missing.near), None)))
    if missing.near:
        return Fix(does=f"write {missing.near[0]}, if that is what was meant", safety=Safety.UNSAFE)
    return Fix(does=f"look {missing.name} up in the release notes of {missing.package}, or install an older version")
