"""TW602 unregistered-parameters: the optimizer does not hold some trainable weights, so they never change.

Why it matters: A part of the model, or all of it, keeps its initial random weights, without an error.
Evidence: Layers in a plain Python list that are called and get a gradient but are not part of the model; or an
optimizer that holds another model's tensors; or one that leaves out layers that no checkpoint has trained, where
including them lets the batch be learned clearly better, on three seeds.
Error: `optimizer got an empty parameter list`
Error: `This optimizer can only be called for the variables it was originally built with`
Fix (safe): Put the layers in an nn.ModuleList. Build the optimizer from the parameters of the model that is trained.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainwright.core import (
    Call,
    Diagnosis,
    Finding,
    Fix,
    Outcome,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    Severity,
    Trial,
    rule,
)
from trainwright.rules.repairs import unfreeze
from trainwright.stages import ForwardFacts, GradientFacts, OptimizerFacts, PlainList, SetupFacts

# Nobody intentionally leaves more than half of a new model's matrices untrained while requiring their gradients. For a
# smaller part (random features, a fixed projection), only an experiment can tell whether it is intended.
MOSTLY = 0.5
_PLAIN = ("list", "tuple", "dict")


@rule("TW602", Severity.ERROR)
def unregistered_parameters(
    setup: SetupFacts, optimizer: OptimizerFacts | None, gradients: GradientFacts | None, forward: ForwardFacts | None
) -> Diagnosis:
    """Layers in a plain list, tensors of another model, or forgotten layers."""
    if setup.empty is not None:
        for one in setup.empty.lists:
            yield _only_list(one, setup)
    if optimizer is None or gradients is None or forward is None:
        return
    for one in gradients.plain_lists:
        yield _plain_list(one, setup)
    missing = optimizer.unregistered
    if optimizer.foreign and missing:
        yield _other_model(optimizer, setup)
        return
    reached = {g.name for g in gradients.gradients if g.norm}
    forgotten = [p for p in forward.parameters if p.name in missing and p.name in reached and p.untrained]
    if not forgotten or not optimizer.held:
        return
    names = [p.name for p in forgotten]
    change = unfreeze(names, f"hold {len(names)} more parameters in the optimizer")
    proof: Proof | Outcome | None = None
    if len(names) > MOSTLY * len([p for p in forward.parameters if p.trainable and len(p.shape) > 1]):
        proof = Proof(
            "backward gives them gradients, but no parameter group holds them, so they keep their random initial values"
        )
    else:
        outcome = yield Trial(change=change, steps=24)
        proof = outcome if outcome.clearly_better or outcome.learns_alone else None
    if proof is not None:
        yield Finding(
            message=f"{optimizer.kind} does not hold {len(names)} of {len(optimizer.trainable)} trainable parameters that "
            f"nothing has trained yet ({names[0]} first)",
            measured={"not_held": len(names), "trainable": len(optimizer.trainable), "first": names[0]},
            where=setup.place(Role.OPTIMIZER, Role.CREATE_OPTIMIZER, Role.TRAINER),
            proof=proof,
            repair=change,
            fix=Fix(does="build the optimizer from model.parameters()", safety=Safety.UNSAFE),
        )


def _only_list(one: PlainList, setup: SetupFacts) -> Finding:
    """Layers that an optimizer was to train, and that are registered nowhere."""
    return Finding(
        message=f"{one.name} is {_kind(one)} of {one.modules} layers: {setup.model_class} does not register them, so "
        f"their {one.parameters:,} weights are not among its parameters",
        measured={"attribute": one.name, "layers": one.modules, "parameters": one.parameters},
        where=one.where or setup.place(Role.MODEL),
        proof=Proof(f"{setup.model_class} has {setup.parameters:,} parameters without them: {setup.failure}"),
        fix=_registered(one, setup),
    )


def _kind(one: PlainList) -> str:
    return f"a plain {one.kind}" if one.kind in _PLAIN else f"no layer but a {one.kind}"


def _registered(one: PlainList, setup: SetupFacts) -> Fix:
    container = setup.words.layer_dict if one.kind == "dict" else setup.words.layer_list
    plain = one.kind in _PLAIN
    does = f"write {container}(…) for {one.name}" if plain else f"derive {one.kind} from the framework's layer class"
    return Fix(does=does, safety=Safety.SAFE)


def _plain_list(one: PlainList, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"{one.name} is {_kind(one)} of {one.modules} layers: their {one.parameters:,} weights are used and get "
        "gradients, and no optimizer holds them",
        measured={"attribute": one.name, "layers": one.modules, "parameters": one.parameters},
        where=one.where or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(
            "they were called in the forward pass and got gradients, but they are not among the model's parameters"
        ),
        repair=_register([one.name]),
        fix=_registered(one, setup),
    )


def _other_model(optimizer: OptimizerFacts, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"{optimizer.kind} holds {optimizer.foreign} tensors that are not the model's, and lacks "
        f"{len(optimizer.unregistered)} of its {len(optimizer.trainable)} trainable parameters",
        measured={"foreign": optimizer.foreign, "not_held": len(optimizer.unregistered)},
        where=setup.place(Role.OPTIMIZER, Role.CREATE_OPTIMIZER, Role.TRAINER),
        proof=Proof("compared by identity: what the optimizer holds, and the model's trainable parameters"),
        repair=None if optimizer.bound else Repair("hold the model's own parameters", Seam.OPTIMIZER, _hold),
        fix=Fix(
            does="build a separate optimizer for each model"
            if optimizer.bound
            else "build the optimizer from the parameters of the model that is trained",
            safety=Safety.SAFE,
        ),
    )


def _register(names: Sequence[str]) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.register_lists(call["model"], names)
        return call

    return Repair("register the lists of layers", Seam.TRAINER, change)


def _hold(call: Call) -> Call:
    call.tensors.hold_parameters(call["optimizer"], call["model"])
    return call
