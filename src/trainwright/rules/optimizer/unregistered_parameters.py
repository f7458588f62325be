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

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.role import Role
from trainwright.core.rule import Diagnosis, rule
from trainwright.core.trial import Outcome, Trial
from trainwright.rules.repairs import unfreeze
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.gradients import GradientFacts, PlainList
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.setup import SetupFacts

# Nobody intentionally leaves more than half of a new model's matrices untrained while requiring their gradients. For a
# smaller part (random features, a fixed projection), only an experiment can tell whether it is intended.
MOSTLY = 0.5


@rule("TW602", Severity.ERROR)
def unregistered_parameters(
    optimizer: OptimizerFacts, gradients: GradientFacts, forward: ForwardFacts, setup: SetupFacts
) -> Diagnosis:
    """Layers in a plain list, tensors of another model, or forgotten layers."""
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


def _plain_list(one: PlainList, setup: SetupFacts) -> Finding:
    plain = one.kind in ("list", "tuple", "dict")
    container = setup.words.layer_dict if one.kind == "dict" else setup.words.layer_list
    return Finding(
        message=f"{one.name} is {'a plain' if plain else 'no layer but a'} {one.kind} of {one.modules} layers: their {one.parameters:,} weights are used and get "
        "gradients, and no optimizer holds them",
        measured={"attribute": one.name, "layers": one.modules, "parameters": one.parameters},
        where=one.where or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(
            "they were called in the forward pass and got gradients, but they are not among the model's parameters"
        ),
        repair=_register([one.name]),
        fix=Fix(
            does=f"write {container}(…) for {one.name}"
            if plain
            else f"derive {one.kind} from the framework's layer class",
            safety=Safety.SAFE,
        ),
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
