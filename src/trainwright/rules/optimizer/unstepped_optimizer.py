"""An update leaves every weight unchanged, or no update is made."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.rules.fixes import set_keyword, unsafe
from trainwright.stages import GradientFacts, OptimizerFacts, SetupFacts

_IN_PLACE = "change the parameter in place (p -= …, under no_grad): p = p - … only rebinds the name to a new tensor"


@rule("TW601", Severity.ERROR, foretells=Fate.STANDS_STILL)
def unstepped_optimizer(optimizer: OptimizerFacts, gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An update without effect, although the optimizer holds the weights and its rate is not zero."""
    if optimizer.epochs is not None and not optimizer.epochs:
        yield _no_epoch(optimizer.epochs, setup)
        return
    if not optimizer.kind:
        yield from _no_optimizer(optimizer, gradients, setup)
        return
    if optimizer.given_gradients is False:
        yield from _never_given(optimizer, setup)
        return
    held = [n for n in optimizer.held if n in optimizer.changed]
    moved = [n for n in held if optimizer.changed[n] != 0]  # NaN is a change, too
    reached = [g for g in gradients.gradients if g.name in held and g.norm]
    rate = optimizer.learning_rate if optimizer.update_rate is None else optimizer.update_rate
    if optimizer.failure or moved or not reached or rate == 0 or gradients.wiped:
        return  # of gradients that were cleared before it, wiped-accumulation speaks
    if setup.precision == "fp16":  # its first steps are skipped while the loss scale is found
        return
    norm = f"{gradients.norm:.3g}" if gradients.norm is not None else "unknown"
    if setup.call == "training loop" and setup.place(Role.OPTIMIZER_STEP) is None:
        yield _never_called(optimizer, held, setup)
        return
    yield Finding(
        message=f"one update changed none of the {len(held)} weights that {optimizer.kind} holds, although the gradient's norm is "
        f"{norm} and the rate {rate:.3g}",
        measured={"changed": 0, "held": len(held), "learning_rate": rate},
        where=setup.place(
            Role.OPTIMIZER_STEP, Role.BACKWARD, Role.OPTIMIZER, Role.CREATE_OPTIMIZER, Role.OPTIM, Role.TRAINER
        ),
        proof=Proof("every weight is the same to the last bit before and after optimizer.step()"),
        fix=Fix(does=f"let {optimizer.kind}.step() update the weights (call super().step())"),
    )


def _never_called(optimizer: OptimizerFacts, held: list[str], setup: SetupFacts) -> Finding:
    return Finding(
        message=f"the training step never calls {optimizer.kind}.step(): none of the {len(held)} weights that it holds changes",
        measured={"changed": 0, "held": len(held)},
        where=setup.place(Role.BACKWARD, Role.OPTIMIZER, Role.TRAINER),
        proof=Proof(
            "every weight is the same to the last bit before and after the step, in which no optimizer's step() was called"
        ),
        fix=Fix(
            does=_IN_PLACE
            if "update_by_hand" in setup.places
            else "call optimizer.step(), with its parentheses, after backward"
        ),
    )


def _no_epoch(epochs: range, setup: SetupFacts) -> Finding:
    where, end = setup.place(Role.EPOCHS, Role.TRAIN_CALL), epochs.start + max(epochs.stop, 1)
    edits = set_keyword(where, "epochs", str(end), "fit")
    return Finding(
        message=f"fit starts at epoch {epochs.start} (initial_epoch) and ends at {epochs.stop} (epochs), so it makes no update",
        measured={"initial_epoch": epochs.start, "epochs": epochs.stop, "updates": 0},
        where=where,
        proof=Proof(
            f"epochs is the number of the last epoch, not a count: there is none from {epochs.start} to {epochs.stop}"
        ),
        fix=unsafe(f"set epochs={end}, counted from the first training on", edits),
    )


def _never_given(optimizer: OptimizerFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A train_step that computes a loss, and perhaps gradients, but does not apply them; it may set weights itself."""
    if optimizer.failure or not optimizer.changed or any(optimizer.changed.values()):
        return
    yield Finding(
        message=f"the model's own train_step gives {optimizer.kind} no gradients: it changes none of the "
        f"{len(optimizer.changed)} trainable weights",
        measured={"changed": 0, "held": len(optimizer.held), "learning_rate": optimizer.learning_rate},
        where=setup.place(Role.TRAIN_STEP, Role.TRAIN_CALL),
        proof=Proof(
            "every weight is the same to the last bit before and after a step, in which no optimizer was applied"
        ),
        fix=Fix(does="apply the gradients: self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))"),
    )


def _no_optimizer(optimizer: OptimizerFacts, gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Gradients that no optimizer uses; a handwritten update would change the weights."""
    reached = [g.name for g in gradients.gradients if g.norm and g.name in optimizer.changed]
    if optimizer.failure or not reached or any(optimizer.changed.values()):
        return
    yield Finding(
        message=f"the step gives {len(reached)} parameters a gradient, and no optimizer updates them",
        measured={"changed": 0, "reached": len(reached), "optimizers": 0},
        where=setup.place(Role.CREATE_OPTIMIZER, Role.OPTIMIZER, Role.TRAINING_STEP, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(
            "every weight is the same to the last bit before and after the step, in which no optimizer takes part"
        ),
        fix=Fix(
            does=_IN_PLACE
            if "update_by_hand" in setup.places
            else "return the optimizer from configure_optimizers"
            if "create_optimizer" in setup.places
            else "build an optimizer on the model's parameters and call its step() after backward"
        ),
    )
