"""Which parameters are trained: frozen ones, and those that no optimizer holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean

from trainwright.core import (
    Diagnosis,
    Fate,
    Finding,
    Fix,
    Outcome,
    Place,
    Proof,
    Repair,
    Role,
    Seam,
    Severity,
    Trial,
    rule,
)
from trainwright.frameworks.error_texts import EMPTY_LIST
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import acting, on_model, unfreeze, unfreeze_model
from trainwright.stages import (
    ForwardFacts,
    GradientFacts,
    IneffectiveFreeze,
    OptimizerFacts,
    ParameterFacts,
    PlainList,
    SetupFacts,
)

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
            fix=unsafe("build the optimizer from model.parameters()"),
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
    return safe(does)


def _plain_list(one: PlainList, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"{one.name} is {_kind(one)} of {one.modules} layers: their {one.parameters:,} weights are used and get "
        "gradients, and no optimizer holds them",
        measured={"attribute": one.name, "layers": one.modules, "parameters": one.parameters},
        where=one.where or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(
            "they were called in the forward pass and got gradients, but they are not among the model's parameters"
        ),
        repair=on_model(
            "register the lists of layers", lambda tensors, model: tensors.register_lists(model, [one.name])
        ),
        fix=_registered(one, setup),
    )


def _other_model(optimizer: OptimizerFacts, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"{optimizer.kind} holds {optimizer.foreign} tensors that are not the model's, and lacks "
        f"{len(optimizer.unregistered)} of its {len(optimizer.trainable)} trainable parameters",
        measured={"foreign": optimizer.foreign, "not_held": len(optimizer.unregistered)},
        where=setup.place(Role.OPTIMIZER, Role.CREATE_OPTIMIZER, Role.TRAINER),
        proof=Proof("compared by identity: what the optimizer holds, and the model's trainable parameters"),
        repair=None
        if optimizer.bound
        else acting(
            "hold the model's own parameters",
            Seam.OPTIMIZER,
            lambda call: call.tensors.hold_parameters(call["optimizer"], call["model"]),
        ),
        fix=safe(
            "build a separate optimizer for each model"
            if optimizer.bound
            else "build the optimizer from the parameters of the model that is trained"
        ),
    )


@rule("TW603", Severity.ERROR, foretells=Fate.STANDS_STILL)
def frozen_model(setup: SetupFacts) -> Iterator[Finding]:
    """A model whose parameters are all frozen, or an optimizer that got no parameters for that reason."""
    # Without the model's numbers, a line that froze something is all that is known.
    empty = setup.failure is not None and EMPTY_LIST in setup.failure.message and setup.empty is None
    frozen = setup.parameters > 0 and setup.trainable_parameters == 0
    if not (frozen or (empty and setup.frozen_at)):
        return
    count = (
        f"all {setup.parameters:,} parameters of {setup.model_class} are"
        if frozen
        else "every parameter given to it is"
    )
    yield Finding(
        message=f"{count} frozen: nothing is left to train",
        measured={"parameters": setup.parameters, "trainable": 0},
        where=next(iter(setup.frozen_at), None) or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof("none of them is trainable when training starts" if frozen else f"{setup.failure}"),
        repair=unfreeze_model() if frozen else None,
        fix=Fix(does="do not freeze the layers that should learn, at least not the head"),
    )


@rule("TW604", Severity.WARNING)
def ineffective_freeze(setup: SetupFacts) -> Iterator[Finding]:
    """An attribute of a layer, or a misspelled attribute of a parameter, that was set to False."""
    for one in setup.ineffective_freezes:
        if one.after_compile:
            yield _too_late(one)
            continue
        owner = f"layers ({one.kind})" if one.on_modules else "parameters"
        yield Finding(
            message=f"{one.attribute} = False was set on {one.objects} {owner}, which freezes nothing: "
            f"{len(one.parameters)} parameters there still require a gradient",
            measured={"attribute": one.attribute, "objects": one.objects, "still_trainable": len(one.parameters)},
            where=one.where,
            proof=Proof(f"{one.parameters[0]}.requires_grad is True when training starts"),
            repair=_freeze(one),
            fix=safe("call requires_grad_(False) on the layer" if one.on_modules else "write requires_grad = False"),
        )


def _too_late(one: IneffectiveFreeze) -> Finding:
    return Finding(
        message=f"{one.attribute} = False was set on a layer ({one.kind}) after the training step was compiled, and has no effect "
        f"on it: one step changes {len(one.parameters)} of its weights",
        measured={"attribute": one.attribute, "objects": one.objects, "changed_weights": len(one.parameters)},
        where=one.where,
        proof=Proof(f"{one.parameters[0]} differs after one step of the compiled training function"),
        fix=safe("call compile again after the line that freezes"),
    )


def _freeze(one: IneffectiveFreeze) -> Repair:
    return on_model(
        f"freeze the {len(one.parameters)} parameters", lambda tensors, model: tensors.freeze(model, one.parameters)
    )


# One random layer below a trained one is a known method: random features (Rahimi and Recht 2007), reservoirs.
FEWEST_LAYERS = 2
# A model whose loss falls below this share of where it began learns in spite of its random layers.
STALLED_SHARE = 0.5


@rule("TW615", Severity.ERROR, foretells=Fate.UNTRAINED)
def frozen_untrained_layers(forward: ForwardFacts, setup: SetupFacts) -> Diagnosis:
    """Frozen random weights in layers that were called; training them helps."""
    frozen = forward.frozen_untrained
    if not frozen or not any(p.trainable for p in forward.parameters):
        return
    modules = {p.module for p in frozen}
    if len(modules) < FEWEST_LAYERS and not (forward.head and forward.head.name in modules):
        return
    names = _with_norms(modules, forward)
    change = unfreeze(names, f"train the {len(names)} frozen parameters that nothing has trained")
    severity = Severity.ERROR
    proof: Proof | Outcome | None = (
        _fresh_head(frozen, forward) or _not_in_checkpoint(frozen, setup) or _drowned(forward)
    )
    if proof is None:
        proof = outcome = yield Trial(change=change, steps=24)
        if not outcome.clearly_better:
            return
        if outcome.start and fmean(outcome.before) < STALLED_SHARE * fmean(outcome.start):
            severity = Severity.NOTE
    total = sum(_weights_of(p) for p in forward.parameters)
    size = sum(_weights_of(p) for p in frozen)
    yield Finding(
        severity=severity,
        message=f"{len(frozen)} frozen layers were never trained ({frozen[0].name} first): {size:,} of {total:,} weights "
        "keep their random initial values",
        measured={
            "frozen_untrained": len(frozen),
            "weights": size,
            "share": round(size / total, 4),
            "first": frozen[0].name,
        },
        where=_freezing_line(frozen) or setup.place(Role.MODEL, Role.TRAINER),
        proof=proof,
        repair=change,
        fix=unsafe("do not freeze them, or start from a trained checkpoint"),
    )


def _with_norms(modules: set[str], forward: ForwardFacts) -> list[str]:
    """The frozen parameters of these layers, and of frozen, untrained layers without matrices."""
    others = {p.module for p in forward.parameters if p.trainable or len(p.shape) > 1} - modules
    return [
        p.name
        for p in forward.parameters
        if not p.trainable and p.module not in others and (p.module in modules or p.may_be_untrained)
    ]


def _fresh_head(frozen: Sequence[ParameterFacts], forward: ForwardFacts) -> Proof | None:
    """Scores of a random layer on top of a trained model; clearly they stay random, so no experiment is needed."""
    head = forward.head.name if forward.head else None
    fresh = [p.name for p in frozen if p.freshly_initialised and p.module == head]
    return Proof(f"{fresh[0]}, which computes the scores, is frozen and not part of the checkpoint") if fresh else None


def _not_in_checkpoint(frozen: Sequence[ParameterFacts], setup: SetupFacts) -> Proof | None:
    """Layers that a loaded checkpoint did not contain; nobody means to keep those random."""
    missing = [p.name for p in frozen if p.freshly_initialised]
    if not setup.loads_checkpoint or not missing:
        return None
    return Proof(f"the model's checkpoint does not contain {len(missing)} of the frozen matrices")


def _drowned(forward: ForwardFacts) -> Proof | None:
    """Random layers that remove the signal: no training of later layers can recover it."""
    given = forward.head.inputs[0] if forward.head and forward.head.inputs else None
    if given is None or not forward.drowned_in_frozen:
        return None
    return Proof(f"the head's input varies by only {given.deviation or 0.0:.2g} over the rows of a batch")


def _freezing_line(frozen: Sequence[ParameterFacts]) -> Place | None:
    """The line that froze the most of them."""
    lines = Counter(p.frozen_at for p in frozen if p.frozen_at is not None)
    return lines.most_common(1)[0][0] if lines else None


def _weights_of(parameter: ParameterFacts) -> int:
    return math.prod(parameter.shape)


@rule("TW616", Severity.ERROR, foretells=Fate.STOPS)
def empty_parameter_list(setup: SetupFacts) -> Iterator[Finding]:
    """An iterator that was already read, a selection that holds nothing, or a model without parameters."""
    empty = setup.empty
    if empty is None or empty.lists or any(one.meant == "__init__" for one in setup.misspelled):
        return
    model, count = setup.model_class, setup.parameters
    measured = {"parameters": count, "trainable": setup.trainable_parameters}
    if not count:
        yield Finding(
            message=f"{model} has no parameters: neither it nor a layer in it has a weight",
            measured=measured,
            where=empty.where or (setup.failure.where if setup.failure else None),
            proof=Proof(f"{model} was searched for parameters and for layers in its attributes: there are none"),
            fix=Fix(does=f"create the layers in {model}.__init__, as attributes of self"),
        )
    elif setup.trainable_parameters:
        yield Finding(
            message=f"{empty.expression} is an iterator that was already read to its end: it yields no parameter again"
            if empty.is_iterator
            else f"{empty.expression} yields none of the {count:,} parameters of {model}",
            measured=measured,
            where=setup.failure.where if setup.failure else empty.where,
            proof=Proof(f"{model} has {setup.trainable_parameters:,} trainable parameters, and the optimizer got none"),
            fix=safe("make a list of it where it is assigned: list(model.parameters())")
            if empty.is_iterator
            else Fix(does="compare the names in the selection with those of model.named_parameters()"),
        )
