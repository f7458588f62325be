"""The experiments on learning rates that several rules share: is there a rate at which the same batch is learnt?"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from trainwright.core.finding import Place
from trainwright.core.fix import Fix, Safety, SetKeyword
from trainwright.core.repair import Repair
from trainwright.core.trial import Outcome, Trial
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.overfit import OverfitFacts
from trainwright.stages.setup import SetupFacts

# Enough for a rate that works to lower the loss of one batch by a tenth, few enough that three seeds of a
# 20-million-parameter model take half a minute on two cores.
STEPS = 8
# A batch of which more than this share of the first loss is left after the overfit stage's steps is stuck; a
# rate that is merely not the best one leaves less.
STUCK_SHARE = 0.7


@dataclass(frozen=True)
class Better:
    """A rate that learns what the script's does not."""

    factor: float
    outcome: Outcome


def is_stuck(overfit: OverfitFacts) -> bool:
    """Whether learning one batch by heart led nowhere: upwards, or back to where it began."""
    first = overfit.losses[0]
    return overfit.diverged or overfit.final > STUCK_SHARE * first


def lower_rate(optimizer: OptimizerFacts) -> Generator[Trial, Outcome, Better | None]:
    """Try a tenth to a ten-thousandth of the rate, on one seed; then the best of them on three, or None."""
    found: dict[float, float] = {}
    for factor in (0.1, 0.01, 0.001, 0.0001):
        if optimizer.learning_rate * factor < SMALLEST_RATE:
            break
        outcome = yield Trial(change=scale_learning_rate(factor), steps=STEPS, seeds=1)
        if outcome.cut_off:
            return None
        loss = outcome.after[0]
        if loss == loss:
            if found and loss > 1.1 * min(found.values()):
                break  # past the best rate: lower ones are slower still
            found[factor] = loss
    if not found:
        return None
    best = min(found, key=lambda factor: found[factor])
    outcome = yield Trial(change=scale_learning_rate(best), steps=STEPS)
    return Better(best, outcome) if outcome.clearly_better else None


# No optimizer in use learns anything within a usual run below this rate.
SMALLEST_RATE = 1e-7


def rate_place(setup: SetupFacts) -> Place | None:
    """The line on which the rate in force is written, else that of what has it as a default."""
    return setup.place("learning_rate", "optimizer", "arguments", "trainer")


def set_rate(setup: SetupFacts, optimizer: OptimizerFacts, rate: float) -> Fix:
    """Write another rate where the script writes its rate."""
    name = "lr" if optimizer.user_built else "learning_rate"
    where = rate_place(setup)
    edits = (SetKeyword(file=where.file, line=where.line, name=name, value=f"{rate:.0e}"),) if where else ()
    return Fix(does=f"set {name}={rate:.0e}", safety=Safety.UNSAFE, edits=edits)


def keep_rate(factor: float) -> Repair:
    """The repair that keeps the rate that was found."""
    return scale_learning_rate(factor)


def mean(values: tuple[float, ...]) -> float:
    """Their mean."""
    return sum(values) / len(values)
