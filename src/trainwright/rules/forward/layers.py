"""Layers that do not act as the training needs them to."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Diagnosis, Finding, Proof, Repair, Role, Seam, Severity, Trial, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import on_model
from trainwright.stages import ForwardFacts, OverfitFacts, SetupFacts


@rule("TW314", Severity.WARNING)
def inactive_training_mode(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Modules in evaluation mode inside trained blocks, if the whole model is in evaluation mode or is new."""
    names = forward.eval_modules
    if not names and forward.lost_modules:
        yield _lost(forward)
    if not names or (forward.training and setup.loads_checkpoint):
        return
    kinds = {m.name: m.kind for m in forward.modules}
    shown = ", ".join(f"{n} ({kinds[n]})" if n in kinds else n for n in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    whole = "the model is" if not forward.training else f"{shown}{more} {'are' if len(names) > 1 else 'is'}"
    yield Finding(
        message=f"{whole} in evaluation mode during the training step: {len(names)} modules with dropout or batch statistics have no effect",
        measured={"modules": len(names), "first": names[0]},
        where=forward.called_at or setup.place(Role.MODE_CHANGE, Role.CALL, Role.MODEL),
        proof=Proof(_proof_of_mode(forward)),
        repair=_activate(names),
        fix=safe(_advice_on_mode(forward)),
    )


def _proof_of_mode(forward: ForwardFacts) -> str:
    name = forward.eval_modules[0]
    if forward.mode_by_call:
        return f"{name} is called with training=False while the loss of a training batch is computed"
    return f"{name}.training is False while the loss of a training batch is computed"


def _advice_on_mode(forward: ForwardFacts) -> str:
    if not forward.mode_by_call:
        return "leave the modules in training mode during training; an overridden train() calls super().train(mode)"
    if forward.called_at is not None:
        return "call the model with training=True in the training step"
    return "add an argument training to the model's call() and pass it on to its layers: layer(x, training=training)"


def _lost(forward: ForwardFacts) -> Finding:
    names = forward.lost_modules
    return Finding(
        message=f"the evaluation leaves the model in evaluation mode, and training continues in it from the second epoch: "
        f"{len(names)} modules with dropout or batch statistics have no effect",
        measured={"modules": len(names), "first": names[0]},
        where=forward.mode_lost_at,
        proof=Proof(
            f"{names[0]}.training is True in the training steps of a first epoch, and False in those of a second"
        ),
        fix=safe("call model.train() at the beginning of each epoch, not once before the loop"),
    )


def _activate(names: tuple[str, ...]) -> Repair:
    return on_model(
        "put these modules in training mode for training steps",
        lambda tensors, model: tensors.activate(model, names),
        Seam.FORWARD,
    )


# 0.5 is the highest probability in common use (Srivastava et al. 2014); 0.7 occurs before a last layer.
EXTREME = 0.75


@rule("TW316", Severity.WARNING)
def extreme_dropout(forward: ForwardFacts, overfit: OverfitFacts, setup: SetupFacts) -> Diagnosis:
    """Dropout stronger than common practice, on a batch that is not learned."""
    strong = [m for m in forward.modules if m.dropout is not None and m.dropout >= EXTREME and m.training]
    if overfit.learnt or not strong:
        return
    outcome = yield Trial(
        change=on_model("dropout 0", lambda tensors, model: tensors.set_dropout(model, 0.0), Seam.FORWARD), steps=24
    )
    if not outcome.clearly_better:
        return
    first = max(strong, key=lambda m: m.dropout or 0.0)
    yield Finding(
        message=f"{first.name} drops {first.dropout:.0%} of its values, so a batch is not memorized; without dropout, it is learned better",
        measured={"probability": first.dropout or 0.0, "modules": len(strong)},
        where=first.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=on_model("set dropout to 0.1", lambda tensors, model: tensors.set_dropout(model, 0.1), Seam.FORWARD),
        fix=unsafe("set the dropout probability to 0.1 to 0.5 (p is the fraction that is dropped)"),
    )


@rule("TW318", Severity.ERROR)
def rebuilt_layers(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Layers with weights that the model's second call no longer uses."""
    if not forward.rebuilt:
        return
    first, count = forward.rebuilt[0], len(forward.rebuilt)
    weights = sum(one.parameters for one in forward.rebuilt)
    what = f"a {first.kind} layer" if count == 1 else f"{count} layers ({first.kind} first)"
    yield Finding(
        message=f"each call of the model builds {what} again: {weights:,} weights that stay random, "
        "because no optimizer holds them",
        measured={"layers": count, "parameters": weights, "kind": first.kind},
        where=first.where or setup.place(Role.CALL, Role.MODEL),
        proof=Proof("called twice on one batch, the model used different layers at the same line"),
        fix=safe(f"build it in __init__ (self.head = layers.{first.kind}(…)), and call that"),
    )
