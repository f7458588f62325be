"""TW618 excessive-weight-decay: the weight decay is so strong that it outweighs the gradients.

Why it matters: Each step pulls the weights towards zero more than the loss pulls them anywhere. The predictions stay nearly
constant.
Evidence: One batch that is not learned, and the same steps with a weight decay of zero that learn it clearly better.
Fix (unsafe): Use a usual weight decay: 0.01 for AdamW, 1e-4 for SGD and Adam, which add it to the gradient.
"""

from __future__ import annotations

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Severity, Trial, rule
from trainwright.rules.repairs import set_weight_decay
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts

# Usual values end here: 0.3 for AdamW (Dosovitskiy et al. 2021), 5e-4 for SGD, 1e-2 for Adam with a small model.
STRONG = {"AdamW": 1.0}
STRONG_IN_GRADIENT = 0.05
# A step that takes this share off each weight leaves a third of it after a hundred steps. A small rate needs more steps to
# learn a batch without it.
PULLS, MORE_STEPS = 0.01, 64
USUAL = {"AdamW": 0.01}
USUAL_IN_GRADIENT = 1e-4


@rule("TW618", Severity.ERROR, raises=False)
def excessive_weight_decay(optimizer: OptimizerFacts, overfit: OverfitFacts, setup: SetupFacts) -> Diagnosis:
    """A strong weight decay without which one batch is learned clearly better."""
    decay = max((g.weight_decay for g in optimizer.groups), default=0.0)
    if overfit.learnt or decay < STRONG.get(optimizer.kind, STRONG_IN_GRADIENT):
        return
    change = set_weight_decay(0.0)
    outcome = yield Trial(change=change)
    if not (outcome.clearly_better or outcome.learns_alone) and optimizer.learning_rate * decay >= PULLS:
        outcome = yield Trial(change=change, steps=MORE_STEPS)
    if not (outcome.clearly_better or outcome.learns_alone):
        return
    usual = USUAL.get(optimizer.kind, USUAL_IN_GRADIENT)
    yield Finding(
        message=f"with a weight decay of {decay:g}, {len(overfit.losses)} steps on one batch take the loss from "
        f"{overfit.losses[0]:.4g} to {overfit.losses[-1]:.4g}; without it, the batch is learned",
        measured={"weight_decay": decay, "loss": overfit.losses[-1], "usual": usual},
        where=setup.place(Role.WEIGHT_DECAY, Role.OPTIMIZER, Role.ARGUMENTS, Role.TRAINER),
        proof=outcome,
        repair=set_weight_decay(usual),
        fix=Fix(does=f"set weight_decay={usual:g}", safety=Safety.UNSAFE),
    )
