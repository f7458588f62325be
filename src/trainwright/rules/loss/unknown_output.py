"""TW420 unknown-output: losses, metrics or targets name an output that the model lacks, or losses leave one out.

Why it matters: A model with several outputs finds its losses, metrics and targets by the outputs' names. An unknown
name stops training (for metrics, after the first step) with a long message about structures.
Evidence: The names that compile and the data use, compared with the names of the model's outputs.
Error: `y_true and y_pred have different structures`
Error: `Expected …, but got … of type 'str'`
Error: `Expected keys … in loss dict, but found`
Error: `can't be found in the model's output`
Error: `can't be found in either the model's output`
Error: `should contain metrics objects and …match`
Error: `Cannot convert '…' to EagerTensor of dtype`
Fix (safe): Write the output's own name: the name= of its layer, or its key in the dictionary.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from trainwright.core import Call, Fate, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import LossFacts, SetupFacts

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
            repair=_rename(role, meant) if renamed else None,
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


def _rename(role: str, names: Mapping[str, str]) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.rename_outputs(call["model"], role, names)
        return call

    return Repair(", ".join(f"take {old} as {new}" for old, new in names.items()), Seam.TRAINER, change)
