"""TW605 excessive-learning-rate: the learning rate is so high that one batch, or several in turn, cannot be learned.

Why it matters: The first updates destroy what a pre-trained model has learned or drive the loss up, and the run ends at
a constant prediction.
Evidence: From the same weights on the same batch, a usual rate, or a tenth to a thousandth of this one, learns clearly
better, on three seeds. Or, if one batch is learned anyway, several in turn stay at the loss of a constant prediction,
and with a tenth of the rate they do not.
Fix (unsafe): Write the rate that worked.
"""

from __future__ import annotations

from trainwright.core import Diagnosis, Finding, Severity, rule
from trainwright.rules.rates import better_rate, keep_rate, mean, rate_place, set_rate
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts


@rule("TW605", Severity.ERROR)
def excessive_learning_rate(overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts) -> Diagnosis:
    """A rate set by the script, and a lower one that learns what it does not."""
    if not optimizer.rate_given:
        return
    better = yield from better_rate(overfit, optimizer, setup)
    if better is None:
        return
    rate, lower = optimizer.learning_rate, optimizer.learning_rate * better.factor
    before, after = mean(better.outcome.before), mean(better.outcome.after)
    yield Finding(
        message=f"at a learning rate of {rate:.3g} the loss of {better.rows} is {before:.3g} after {better.outcome.steps} "
        f"updates, at {lower:.3g} it is {after:.3g}",
        measured={"learning_rate": rate, "loss": before, "lower_rate": lower, "loss_at_lower_rate": after},
        where=rate_place(setup),
        proof=better.outcome,
        repair=keep_rate(better.factor),
        fix=set_rate(setup, optimizer, lower),
    )
