"""TW904 unsuitable-learning-rate: with this learning rate the planned training learns nothing, with another one it does.

Why it matters: The loss stays at that of a constant prediction to the end, although nothing else is wrong.
Evidence: The planned training leaves the loss of the held-out rows at a constant prediction's. The same training, from the
same weights on the same rows, learns with ten or a hundred times the rate, or a tenth of it.
Fix (unsafe): Write the rate that worked.
"""

from __future__ import annotations

from collections.abc import Generator

from trainwright.core import Fate, Finding, Proof, Severity, rule
from trainwright.rules.rates import rate_place, set_rate
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages import LearningFacts, Longer, OptimizerFacts, SetupFacts

FACTORS = (10.0, 0.1, 100.0, 0.03)


@rule("TW904", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def unsuitable_learning_rate(
    learning: LearningFacts, optimizer: OptimizerFacts, setup: SetupFacts
) -> Generator[Longer | Finding, LearningFacts, None]:
    """A rate that keeps the whole training from learning."""
    last, found = learning.last, learning.information
    if last is None or not learning.had_its_chance or not learning.at_constant or not optimizer.learning_rate:
        return
    if found is None or found.given.silent or found.lost is not None:
        return
    if learning.in_training_mode is not None and learning.in_training_mode.below:
        return  # it learned, and evaluation mode does not show it
    for factor in FACTORS:
        other = yield Longer(change=scale_learning_rate(factor))
        if other.last is None or not other.shown:
            continue
        rate = factor * optimizer.learning_rate
        yield Finding(
            message=f"at a learning rate of {optimizer.learning_rate:.3g}, {last.updates:,} updates leave the loss of "
            f"{learning.rows:,} rows at {last.loss:.4g}, a constant prediction's {last.constant:.4g}; at {rate:.3g}, "
            f"{other.last.updates:,} updates take it to {other.last.loss:.4g}",
            measured={
                "learning_rate": optimizer.learning_rate,
                "loss": last.loss,
                "constant": last.constant,
                "other_rate": rate,
                "loss_at_other_rate": other.last.loss,
            },
            where=rate_place(setup),
            proof=Proof(
                f"the same training with {factor:g} times the rate: {other.last.deviations:.1f} standard errors below a "
                "constant prediction"
            ),
            fix=set_rate(setup, optimizer, rate),
        )
        return
