"""TW606 negligible-learning-rate: all planned updates together are too small for the model to learn anything.

Why it matters: The loss stays where it began until the last step, which could have many other causes.
Evidence: With the rate raised so far that a few steps move the weights as far as the whole planned training would, one
batch is still not learned. From the same weights, a usual rate learns it clearly better, on three seeds.
Fix (unsafe): Write the rate that worked.
"""

from __future__ import annotations

from statistics import fmean

from trainwright.core import Diagnosis, Finding, Severity, rule
from trainwright.core.trial import LEARNT_SHARE, Trial
from trainwright.rules.rates import ADAPTIVE, NEW_RATE, PRETRAINED_RATE, rate_place, set_rate
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts

STEPS = 24
# The rate in torch's own examples for plain SGD with momentum.
GRADIENT_DESCENT_RATE = 0.1
# A rate within this factor of a usual one is assumed to be intended.
CHOSEN_FACTOR = 30.0
# A schedule that is near zero almost all the time is another fault (schedule-in-wrong-unit).
LEAST_MEAN_FACTOR = 0.05


@rule("TW606", Severity.ERROR)
def negligible_learning_rate(overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts) -> Diagnosis:
    """A rate with which not even all planned steps lower the loss, and a usual one that does."""
    rate, updates = optimizer.learning_rate, optimizer.planned_updates
    adaptive = optimizer.kind in ADAPTIVE
    loaded = setup.loads_checkpoint or setup.trained_before
    usual = (PRETRAINED_RATE if loaded else NEW_RATE) if adaptive else GRADIENT_DESCENT_RATE
    if not overfit.slow or not updates or not 0 < rate * CHOSEN_FACTOR < usual:
        return
    share = fmean(factor for _, factor in optimizer.schedule) if optimizer.schedule else 1.0
    if share < LEAST_MEAN_FACTOR:
        return
    whole = max(1.0, updates * share / STEPS)
    if rate * whole >= usual:  # all updates together go farther than a few of a usual rate
        return
    outcome = yield Trial(change=scale_learning_rate(usual / rate), against=scale_learning_rate(whole), steps=STEPS)
    still = all(after > (1 - LEARNT_SHARE) * start for after, start in zip(outcome.before, outcome.start))
    if not still or not (outcome.clearly_better or outcome.learns_alone):
        return
    before, after = fmean(outcome.before), fmean(outcome.after)
    yield Finding(
        message=f"at a learning rate of {rate:.3g} all {updates:,} planned updates together take the loss of one batch "
        f"from {fmean(outcome.start):.4g} to {before:.4g}; {STEPS} updates at {usual:.3g} take it to {after:.4g}",
        measured={
            "learning_rate": rate,
            "planned_updates": updates,
            "loss": before,
            "higher_rate": usual,
            "loss_at_higher_rate": after,
        },
        where=rate_place(setup),
        proof=outcome,
        repair=scale_learning_rate(usual / rate),
        fix=set_rate(setup, optimizer, usual),
    )
