"""TW314 inactive-training-mode: dropout or batch norm is in evaluation mode during training.

Why it matters: Dropout drops nothing, and batch norm neither normalizes by the batch nor gathers statistics.
Evidence: The modules' modes during the training step, as set or as passed to each call. In a loop, the second epoch is
checked too, after the evaluation. Checkpoint statistics that are kept on purpose, and frozen blocks, are not reported.
Fix (safe): Call model.train(), and let an overridden train() call super().train(mode). If layers get their mode with
each call, as in Keras, call the model with training=True.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import ForwardFacts, SetupFacts


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
        proof=Proof(_proof(forward)),
        repair=_activate(names),
        fix=Fix(does=_advice(forward), safety=Safety.SAFE),
    )


def _proof(forward: ForwardFacts) -> str:
    name = forward.eval_modules[0]
    if forward.mode_by_call:
        return f"{name} is called with training=False while the loss of a training batch is computed"
    return f"{name}.training is False while the loss of a training batch is computed"


def _advice(forward: ForwardFacts) -> str:
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
        repair=Repair("restore the model's modes after each evaluation", Seam.EVALUATION, _restore),
        fix=Fix(does="call model.train() at the beginning of each epoch, not once before the loop", safety=Safety.SAFE),
    )


def _restore(call: Call) -> Call:
    return call.replace(restored=True)


def _activate(names: tuple[str, ...]) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.activate(call["model"], names)
        return call

    return Repair("put these modules in training mode for training steps", Seam.FORWARD, change)
