"""TW605 excessive-learning-rate: the learning rate is so high that one batch, or several in turn, cannot be learned.

Why it matters: The first updates destroy what a pre-trained model has learned or drive the loss up, and the run ends at
a constant prediction.
Evidence: From the same weights on the same batch, a usual rate, or a tenth to a thousandth of this one, learns clearly
better, on three seeds. Or, if one batch is learned anyway, several in turn stay at the loss of a constant prediction,
and with a tenth of the rate they do not.
Fix (unsafe): Write the rate that worked.
"""

from __future__ import annotations

from trainwright.core import Diagnosis, Severity, rule
from trainwright.rules.rates import better_rate, lower_rate_finding
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts


@rule("TW605", Severity.ERROR)
def excessive_learning_rate(overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts) -> Diagnosis:
    """A rate set by the script, and a lower one that learns what it does not."""
    if not optimizer.rate_given:
        return
    better = yield from better_rate(overfit, optimizer, setup)
    if better is None:
        return
    yield lower_rate_finding(better, optimizer, setup, f"at a learning rate of {optimizer.learning_rate:.3g}")
