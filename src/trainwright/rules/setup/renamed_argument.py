"""TW001 renamed-argument: a framework and the script disagree on the name of an argument.

Why it matters: The script stops before training or at its first step; the setting usually exists under another name.
Evidence: The installed version's signature lacks the name but has its successor; or the framework passes an argument
that a method of the script's own Trainer does not accept.
Error: `got an unexpected keyword argument '…'`
Error: `Argument(s) not recognized: …`
Error: `Unrecognized keyword arguments passed to …`
Error: `compute_loss() got an unexpected keyword argument 'num_items_in_batch'`
Fix (safe): Write the new name. If the argument was removed for good, leave it out. Let the method accept the arguments
it gets.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from trainwright.core import (
    Call,
    Edit,
    Fate,
    Finding,
    Fix,
    Place,
    Proof,
    RemoveKeyword,
    RenameKeyword,
    Repair,
    Safety,
    Seam,
    SetKeyword,
    Severity,
    rule,
)
from trainwright.frameworks.renamed_arguments import SUCCESSORS, Successor, gone_from
from trainwright.stages import OverriddenMethod, RefusedCall, SetupFacts

# difflib's ratio at which a name counts as a misspelling of another (evaluate_strategy, learning_rates).
CLOSE = 0.85


@rule("TW001", Severity.ERROR, foretells=Fate.STOPS)
def renamed_argument(setup: SetupFacts) -> Iterator[Finding]:
    """An argument that the caller passes but the callee does not accept."""
    call = setup.refused
    if call is not None and call.argument and " " in call.library:  # a library with a version, not the user's own code
        yield _refused(call)
    for method in setup.overrides:
        if method.missing:
            yield _too_narrow(method, setup)


def _refused(call: RefusedCall) -> Finding:
    new, old, at = successor(call), call.argument, call.places.get(call.argument, call.failure.where)
    if new is None:
        gone = gone_from(call.library).get(old)
        does, repair = (f"leave {old} out of {call.function}(…)" + (f": {gone}" if gone else ""), _leave_out(old))
        known = f"{call.library} has no argument of that name or a similar one"
    else:
        value = new.value(call.value) if new.value else None
        written = repr(value).replace("'", '"') if new.value else ""
        note = f" ({new.note})" if new.note else ""
        does = f"write {new.name}={written} instead of {old}= in {call.function}(…){note}"
        repair = _rename(old, new)
        known = f"{call.library} calls it {new.name}"
    return Finding(
        message=f"{call.function} takes no argument {old}=; {known}",
        measured={"argument": old, **({"new_name": new.name} if new else {}), "library": call.library},
        where=at,
        proof=None if call.repairable else Proof(str(call.failure)),
        repair=repair if call.repairable else None,
        fix=Fix(does=does, safety=Safety.SAFE if new else Safety.UNSAFE, edits=_edits(at, old, new, call.value)),
    )


def _edits(at: Place | None, old: str, new: Successor | None, value: Any) -> tuple[Edit, ...]:
    if at is None:
        return ()
    if new is None:
        return (RemoveKeyword(at.file, at.line, old),)
    if new.value is None:
        return (RenameKeyword(at.file, at.line, old, new.name),)
    written = repr(new.value(value)).replace("'", '"')
    return (RenameKeyword(at.file, at.line, old, new.name), SetKeyword(at.file, at.line, new.name, written))


def successor(call: RefusedCall) -> Successor | None:
    """The argument's current name, if the installed signature has it: a known successor or a similar name."""
    known = SUCCESSORS.get(call.argument)
    if known is not None and known.name in call.accepts and known.name not in call.given:
        return known
    free = [name for name in call.accepts if name not in call.given]
    near = difflib.get_close_matches(call.argument, free, n=1, cutoff=CLOSE)
    return Successor(near[0]) if near and call.argument not in gone_from(call.library) else None


def _rename(old: str, new: Successor) -> Repair:
    def change(call: Call) -> Call:
        value = call[old] if new.value is None else new.value(call[old])
        return call.without(old).replace(**{new.name: value})

    return Repair(f"pass {old} under its new name {new.name}", Seam.CONSTRUCT, change)


def _leave_out(name: str) -> Repair:
    return Repair(f"leave {name} out", Seam.CONSTRUCT, lambda call: call.without(name))


def _too_narrow(method: OverriddenMethod, setup: SetupFacts) -> Finding:
    names = ", ".join(method.missing)
    library = f"{setup.framework} {setup.versions.get(setup.framework or '', '')}".strip()
    added = ", ".join(f"{name}=None" for name in method.missing)

    def change(call: Call) -> Call:
        return call.replace(ignored_arguments={**call.given.get("ignored_arguments", {}), method.name: method.missing})

    return Finding(
        message=f"the script's own {method.name} does not accept {names}, which {library} passes to it",
        measured={"method": method.name, "argument": names, "library": library},
        where=method.where,
        proof=Proof(f"the signature of {method.name} has no {names} and no **kwargs"),
        repair=Repair(f"call {method.name} without {names}", Seam.TRAINER, change),
        fix=Fix(does=f"write def {method.name}(…, {added})", safety=Safety.SAFE),
    )
