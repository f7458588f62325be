"""Names that one side of a call does not know: of functions, arguments, methods, variables and weights."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from trainwright.core import (
    Call,
    Edit,
    Fate,
    Finding,
    Fix,
    Proof,
    RemoveKeyword,
    RenameFunction,
    RenameKeyword,
    RenameName,
    Repair,
    Safety,
    Seam,
    SetKeyword,
    Severity,
    rule,
)
from trainwright.frameworks.removed_names import fill_replacement, replacement
from trainwright.frameworks.renamed_arguments import SUCCESSORS, Successor, gone_from
from trainwright.rules.fixes import safe, unsafe
from trainwright.stages import (
    MissingName,
    MisspelledMethod,
    OverriddenMethod,
    RefusedCall,
    SetupFacts,
    UndefinedName,
    UnmatchedCheckpoint,
)

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
    edits: tuple[Edit, ...] = ()
    if new is None:
        gone = gone_from(call.library).get(old)
        does = f"leave {old} out of {call.function}(…)" + (f": {gone}" if gone else "")
        known = f"{call.library} has no argument of that name or a similar one"
        repair = Repair(f"leave {old} out", Seam.CONSTRUCT, lambda call: call.without(old))
        if at is not None:
            edits = (RemoveKeyword(at.file, at.line, old),)
    else:
        written = repr(new.value(call.value)).replace("'", '"') if new.value else ""
        note = f" ({new.note})" if new.note else ""
        does = f"write {new.name}={written} instead of {old}= in {call.function}(…){note}"
        known = f"{call.library} calls it {new.name}"
        repair = _pass_as(old, new)
        if at is not None:
            value = (SetKeyword(at.file, at.line, new.name, written),) if new.value else ()
            edits = (RenameKeyword(at.file, at.line, old, new.name), *value)
    return Finding(
        message=f"{call.function} takes no argument {old}=; {known}",
        measured={"argument": old, **({"new_name": new.name} if new else {}), "library": call.library},
        where=at,
        proof=None if call.repairable else Proof(str(call.failure)),
        repair=repair if call.repairable else None,
        fix=Fix(does=does, safety=Safety.SAFE if new else Safety.UNSAFE, edits=edits),
    )


def successor(call: RefusedCall) -> Successor | None:
    """The argument's current name, if the installed signature has it: a known successor or a similar name."""
    known = SUCCESSORS.get(call.argument)
    if known is not None and known.name in call.accepts and known.name not in call.given:
        return known
    free = [name for name in call.accepts if name not in call.given]
    near = difflib.get_close_matches(call.argument, free, n=1, cutoff=CLOSE)
    return Successor(near[0]) if near and call.argument not in gone_from(call.library) else None


def _pass_as(old: str, new: Successor) -> Repair:
    def change(call: Call) -> Call:
        value = call[old] if new.value is None else new.value(call[old])
        return call.without(old).replace(**{new.name: value})

    return Repair(f"pass {old} under its new name {new.name}", Seam.CONSTRUCT, change)


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
        fix=safe(f"write def {method.name}(…, {added})"),
    )


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
        fix=_instead_of(missing, known),
    )


def _instead_of(missing: MissingName, known: str | None) -> Fix:
    if missing.wanted_by:
        package = missing.wanted_by.split(" ")[0]
        return Fix(does=f"update {package}, which was written for another version of {missing.package}")
    if known is not None:
        return Fix(does=fill_replacement(known, missing.name, next(iter(missing.near), None)))
    if missing.near:
        return unsafe(f"write {missing.near[0]}, if that is what was meant")
    return Fix(does=f"look {missing.name} up in the release notes of {missing.package}, or install an older version")


@rule("TW008", Severity.ERROR, raises=False, foretells=Fate.STOPS)
def misspelled_method(setup: SetupFacts) -> Iterator[Finding]:
    """Methods that are never called, in classes that lack the method of nearly the same name."""
    for one in setup.misspelled:
        yield _misspelled(one)


def _misspelled(one: MisspelledMethod) -> Finding:
    instead = f"so that of {one.base} runs" if one.inherited else f"which a {one.base} needs"
    return Finding(
        message=f"{one.owner} defines {one.written}, but not {one.meant}, {instead}",
        measured={"class": one.owner, "written": one.written, "meant": one.meant},
        where=one.where,
        proof=Proof(f"no line of the script calls {one.written}, and {one.base} does not know it"),
        is_silent=one.inherited,
        fix=safe(
            f"write def {one.meant}(…) instead of def {one.written}(…)",
            (RenameFunction(one.where.file, one.where.line, one.written, one.meant),),
        ),
    )


@rule("TW012", Severity.ERROR, raises=False)
def unmatched_checkpoint(setup: SetupFacts) -> Iterator[Finding]:
    """State dicts that were loaded with strict=False and matched nothing."""
    for one in setup.unmatched_checkpoints:
        yield Finding(
            message=f"{one.matched} of the checkpoint's {one.tensors} tensors were loaded into {one.model}: it has names such "
            f'as "{one.example}" where the model has "{one.wanted}", and strict=False lets that pass',
            measured={"loaded": one.matched, "tensors": one.tensors, "expected": one.expected},
            where=one.where,
            proof=Proof(
                f"load_state_dict reported {one.tensors - one.matched} unexpected and {one.expected - one.matched} missing names"
            ),
            fix=Fix(does=_advice_on_names(one), safety=Safety.SAFE if one.would_match else Safety.MANUAL),
        )


def _advice_on_names(one: UnmatchedCheckpoint) -> str:
    if not one.would_match:
        return "compare the names of the checkpoint and the model, and leave strict=False out"
    changed = f'replace "{one.prefix}" by "{one.renamed}" at the beginning of the names'
    if not one.prefix:
        changed = f'put "{one.renamed}" before the names, or load into that part of the model'
    elif not one.renamed:
        changed = f'remove "{one.prefix}" from the beginning of the names'
    return f"{changed}: then {one.would_match} of {one.tensors} match; and leave strict=False out"


@rule("TW013", Severity.WARNING, raises=False)
def undefined_name(setup: SetupFacts) -> Iterator[Finding]:
    """Names that the script uses, in lines that have not run, and sets nowhere."""
    for one in setup.undefined:
        yield Finding(
            message=f"no line sets {one.name}: this one will raise NameError once it is reached",
            measured={"name": one.name},
            where=one.where,
            proof=Proof("the script was read: nothing sets, imports or defines the name"),
            fix=_set_or_renamed(one),
        )


def _set_or_renamed(one: UndefinedName) -> Fix:
    if not one.meant:
        return Fix(does=f"set {one.name} before this line")
    edit = RenameName(one.where.file, one.where.line, one.name, one.meant)
    return unsafe(f"write {one.meant} for {one.name}", (edit,))
