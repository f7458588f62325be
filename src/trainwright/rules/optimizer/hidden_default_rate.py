"""TW607 hidden-default-rate: the optimizer was built without a rate, and its default is far too high for this model.

Why it matters: nobody wrote the rate, so nobody looks for it; 1e-3, the default of Adam, is 10 to 100 times what a
pre-trained transformer takes.
Evidence: the call that built the optimizer names no rate; from the same weights on the same batch, or on several
batches in turn, a lower one learns clearly better, on three seeds.
Fix (unsafe): write the rate that worked.
"""

from __future__ import annotations

from collections.abc import Generator

from trainwright.core.finding import Finding, Severity
from trainwright.core.rule import Diagnosis, rule
from trainwright.core.trial import Outcome, Trial
from trainwright.rules.rates import (
    RISEN_FACTOR,
    Better,
    is_stuck,
    keep_rate,
    lower_rate,
    mean,
    rate_place,
    set_rate,
)
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.overfit import OverfitFacts
from trainwright.stages.setup import SetupFacts

# One batch is learnt by heart at rates that throw several about; a loss that rose on the way shows such a rate.
BATCHES = 4
FACTOR = 0.1
# What the lower rate leaves of the loss: a rate that is merely not the best one is no fault.
LEFT = 0.5


@rule("TW607", Severity.ERROR)
def hidden_default_rate(overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts) -> Diagnosis:
    """A rate that nobody wrote, and a lower one that learns the batch it does not."""
    if optimizer.rate_given:
        return
    stuck = is_stuck(overfit)
    better = (yield from lower_rate(optimizer, setup)) if stuck else (yield from _on_several(overfit))
    if better is None:
        return
    rows = "one batch" if stuck else f"{BATCHES} batches"
    rate, lower = optimizer.learning_rate, optimizer.learning_rate * better.factor
    before, after = mean(better.outcome.before), mean(better.outcome.after)
    yield Finding(
        message=f"{optimizer.kind} was built without a rate and takes its default of {rate:.3g}: the loss of {rows} "
        f"is {before:.3g} after {better.outcome.steps} updates, at {lower:.3g} it is {after:.3g}",
        measured={"learning_rate": rate, "loss": before, "lower_rate": lower, "loss_at_lower_rate": after},
        where=rate_place(setup),
        proof=better.outcome,
        repair=keep_rate(better.factor),
        fix=set_rate(setup, optimizer, lower),
    )


def _on_several(overfit: OverfitFacts) -> Generator[Trial, Outcome, Better | None]:
    """A tenth of the rate over several batches, on one seed, then on three; None where the default learns them too."""
    if not any(x > RISEN_FACTOR * overfit.losses[0] for x in overfit.losses):
        return None
    for seeds in (1, 3):
        outcome = yield Trial(
            change=scale_learning_rate(FACTOR), steps=4 * BATCHES, batches=BATCHES, seeds=seeds
        )
        if outcome.cut_off or not outcome.clearly_better or mean(outcome.after) > LEFT * mean(outcome.before):
            return None
        if overfit.constant is not None and mean(outcome.before) < overfit.constant * (1 - LEFT / 2):
            return None
    return Better(FACTOR, outcome)
