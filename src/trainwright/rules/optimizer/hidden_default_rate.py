"""TW607 hidden-default-rate: the optimizer was built without a rate, and its default is far too high for this model.

Why it matters: Nobody wrote the rate, so nobody looks for it. Adam's default of 1e-3 is 10 to 100 times too high for a
pre-trained transformer.
Evidence: The call that built the optimizer sets no rate. From the same weights on the same batch, or on several batches
in turn, a lower one learns clearly better, on three seeds.
Fix (unsafe): Write the rate that worked.
"""

from __future__ import annotations

from trainwright.core import Diagnosis, Severity, rule
from trainwright.rules.rates import better_rate, lower_rate_finding
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts


@rule("TW607", Severity.ERROR)
def hidden_default_rate(overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts) -> Diagnosis:
    """A default rate, and a lower one that learns what it does not."""
    if optimizer.rate_given:
        return
    better = yield from better_rate(overfit, optimizer, setup)
    if better is None:
        return
    start = f"{optimizer.kind} was built without a rate and uses its default of {optimizer.learning_rate:.3g}:"
    yield lower_rate_finding(better, optimizer, setup, start)
