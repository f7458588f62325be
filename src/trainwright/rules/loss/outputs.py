"""The outputs that a compiled model has losses for."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from trainwright.core import Call, Fate, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.repairs import on_model
from trainwright.stages import BatchFacts, LossFacts, SetupFacts


@rule("TW419", Severity.ERROR, foretells=Fate.STOPS)
def missing_loss(loss: LossFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A step that computes nothing to minimize."""
    if not loss.computed_by_nothing or loss.value:
        return
    seen = f"a step raises {loss.failure.type}" if loss.failure else "the loss of a step is 0, and so is every gradient"
    yield Finding(
        message=f"compile was called without a loss, and nothing else computes one: {seen}",
        measured={"loss": loss.value if loss.value is not None else "none", "target": batch.label_key or "none"},
        where=setup.place(Role.COMPILE, Role.TRAIN_CALL),
        proof=Proof("a step computed no loss, neither a compiled one nor one added by a layer"),
        fix=Fix(does=setup.words.given_loss),
    )


# difflib's ratio above which two names are assumed to mean the same output.
KIN = 0.5


@rule("TW420", Severity.ERROR, foretells=Fate.STOPS)
def unknown_output(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A name in compile or in the targets that no output has."""
    outputs = loss.outputs
    for role, names in loss.outputs_named.items():
        unknown = [n for n in names if n not in outputs]
        if not unknown or (role == "labels" and loss.failure is None):
            continue
        meant = _meant(unknown, [n for n in outputs if n not in names])
        renamed = len(meant) == len(unknown) and not (role == "labels" and loss.outputs_keyed)
        yield Finding(
            message=f"{'the targets name' if role == 'labels' else f'{role} names'} {_listed(unknown)}, but the model has no "
            f"such output: it has {_listed(outputs)}",
            measured={"argument": role, "names": ", ".join(names), "outputs": ", ".join(outputs)},
            where=setup.place(
                *(r for r in Role if r == role),
                Role.TRAIN_DATASET_MADE,
                Role.TRAIN_DATASET,
                Role.COMPILE,
                Role.TRAIN_CALL,
            ),
            proof=Proof(
                str(loss.failure) if loss.failure else f"the model's outputs are {_listed(outputs)} and no others"
            ),
            repair=_rename_outputs(role, meant) if renamed else None,
            fix=Fix(
                does="write " + ", ".join(f'"{new}" instead of "{old}"' for old, new in meant.items())
                if meant
                else f"use the names of the model's outputs: {_listed(outputs)}",
                safety=Safety.SAFE if meant else Safety.MANUAL,
            ),
        )
    named = loss.outputs_named.get("loss", ())
    missing = [n for n in outputs if n not in named]
    if loss.failure is not None and named and missing and set(named) < set(outputs):
        yield _unnamed(named, missing, loss, setup)


def _unnamed(named: Sequence[str], missing: Sequence[str], loss: LossFacts, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"loss names {_listed(named)}, but not the model's output {_listed(missing)}",
        measured={"argument": "loss", "names": ", ".join(named), "outputs": ", ".join(loss.outputs)},
        where=setup.place(Role.LOSS, Role.COMPILE),
        proof=Proof(str(loss.failure)),
        repair=Repair(f"give {_listed(missing)} no loss", Seam.TRAINER, lambda call: _without_loss(call, missing)),
        fix=Fix(does=f"give {_listed(missing)} a loss, or None if it should have none"),
    )


def _without_loss(call: Call, names: Sequence[str]) -> Call:
    call.tensors.give_no_loss(call["model"], names)
    return call


def _meant(unknown: Sequence[str], free: Sequence[str]) -> dict[str, str]:
    """The remaining output that each unknown name resembles; the last remaining output needs no resemblance."""
    near = {name: difflib.get_close_matches(name, free, n=1, cutoff=KIN) for name in unknown}
    found = {name: kin[0] for name, kin in near.items() if kin}
    lost, left = [n for n in unknown if n not in found], [n for n in free if n not in found.values()]
    found |= dict(zip(lost, left)) if len(lost) == len(left) == 1 else {}
    return found if len(set(found.values())) == len(found) else {}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{n}"' for n in names)


def _rename_outputs(role: str, names: Mapping[str, str]) -> Repair:
    return on_model(
        ", ".join(f"take {old} as {new}" for old, new in names.items()),
        lambda tensors, model: tensors.rename_outputs(model, role, names),
    )
