"""One batch cannot be memorized at any learning rate, and no other rule explains it."""

from __future__ import annotations

from trainwright.core import Diagnosis, Fate, Finding, Fix, Proof, Role, Severity, Trial, rule
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts

RATES = (0.1, 10.0, 0.03, 100.0)
# If none of them reaches this rate, they show nothing: hardly an optimizer moves a loss within so few steps.
LEAST_RATE = 1e-5
# Fraction of the way from the constant prediction to the floor. Thirty steps take a model that works at least halfway;
# memorizing a single rare row in a batch of 16 takes it a sixteenth.
LEAST_PROGRESS = 0.1
# Memorizing rows takes parameters; a small linear model on weak features cannot.
PARAMETERS_A_ROW = 10


@rule("TW801", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def unlearnable_batch(overfit: OverfitFacts, setup: SetupFacts, optimizer: OptimizerFacts | None = None) -> Diagnosis:
    """A loss on one batch that stays at that of a constant prediction at every rate."""
    constant, floor = overfit.constant, overfit.floor
    if overfit.learnt or overfit.falling or constant is None or constant - floor <= LEAST_PROGRESS * constant:
        return
    if optimizer is not None and 0 < optimizer.learning_rate * max(RATES) < LEAST_RATE:
        return
    if setup.trainable_parameters < PARAMETERS_A_ROW * overfit.rows:
        return
    goal = constant - LEAST_PROGRESS * (constant - floor)
    tail = overfit.losses[-max(1, len(overfit.losses) // 5) :]
    best = min(sum(tail) / len(tail), overfit.evaluated if overfit.evaluated is not None else float("inf"))
    if best <= goal:
        return
    for factor in RATES:
        outcome = yield Trial(change=scale_learning_rate(factor))
        if outcome.cut_off or outcome.without_effect or outcome.clearly_better:
            return
        reached = min((sum(arm) / len(arm) for arm in (outcome.before, outcome.after) if arm), default=best)
        best = min(best, reached) if reached == reached else best
        if best <= goal:
            return
    rates = ", ".join(f"{f:g}" for f in sorted((1.0, *RATES)))
    one = (
        "; it predicts one class for every row"
        if overfit.predicted_classes == 1 and (overfit.batch_classes or 0) > 1
        else ""
    )
    yield Finding(
        message=f"{len(overfit.losses)} steps on one batch of {overfit.rows} rows leave the loss at {overfit.losses[-1]:.4g}; "
        f"a constant prediction gives {constant:.4g}{one}",
        measured={"first": overfit.losses[0], "last": overfit.losses[-1], "constant": constant, "rows": overfit.rows},
        where=setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(f"the best loss at {rates} times the rate is {best:.4g}, on three seeds each"),
        fix=Fix(
            does="look in forward for layers that are rebuilt on each call, rows out of order, or inputs that get lost"
        ),
    )
