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
# A loss that never rises on the way is not thrown about by its rate: a lower one would only be slower.
RISEN_FACTOR = 1.1
# A rate learns when after the few steps of a trial at most this share of the loss is left.
LEARNING_SHARE = 0.95
# Each costs a run of STEPS steps.
MOST_RATES = 3
# No optimizer in use learns anything within a usual run below this rate.
SMALLEST_RATE = 1e-7
# Optimizers whose steps are of the rate's own size whatever the gradient. Usual rates for them: 2e-5 to 2e-4 for a
# pre-trained transformer (Devlin et al. 2019, appendix A.3; the upper end, for a trial of few steps), 1e-3 for new
# weights (Kingma and Ba 2015).
ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Lamb", "Lion")
PRETRAINED_RATE = 2e-4
NEW_RATE = 1e-3


@dataclass(frozen=True)
class Better:
    """A rate that learns what the script's does not."""

    factor: float
    outcome: Outcome


def is_stuck(overfit: OverfitFacts) -> bool:
    """Whether learning one batch by heart went astray: the loss rose on the way, and most of it is left."""
    first = overfit.losses[0]
    rose = any(not x <= RISEN_FACTOR * first for x in overfit.losses)
    return rose and (overfit.diverged or overfit.final > STUCK_SHARE * first)


def lower_rate(optimizer: OptimizerFacts, setup: SetupFacts) -> Generator[Trial, Outcome, Better | None]:
    """Try lower rates on one seed; the first that learns is tried on three. None where there is none."""
    for factor in _factors(optimizer, setup):
        look = yield Trial(change=scale_learning_rate(factor), steps=STEPS, seeds=1)
        if look.cut_off:
            return None
        loss, start = look.after[0], look.start[0]
        if loss < LEARNING_SHARE * start and not loss > LEARNING_SHARE * look.before[0]:
            outcome = yield Trial(change=scale_learning_rate(factor), steps=STEPS)
            if outcome.clearly_better:
                return Better(factor, outcome)
    return None


def _factors(optimizer: OptimizerFacts, setup: SetupFacts) -> list[float]:
    """Factors of the rate to try: first the one that leads to a usual rate, then powers of ten."""
    rate = optimizer.learning_rate
    factors = [0.1, 0.01, 0.001, 0.0001]
    if optimizer.kind in ADAPTIVE:
        usual = (PRETRAINED_RATE if setup.loads_checkpoint else NEW_RATE) / rate
        factors = [usual] * (usual < 0.2) + [f for f in factors if not 0.3 < f / usual < 3]
    return [f for f in factors if f * rate >= SMALLEST_RATE][:MOST_RATES]


def rate_place(setup: SetupFacts) -> Place | None:
    """The line on which the rate in force is written, else that of what has it as a default."""
    return setup.place("learning_rate", "optimizer", "arguments", "trainer")


def set_rate(setup: SetupFacts, optimizer: OptimizerFacts, rate: float) -> Fix:
    """Write another rate where the script writes its rate."""
    if optimizer.rate_keyword:
        return _set_argument(setup, optimizer, rate)
    name = "lr" if optimizer.user_built else "learning_rate"
    where = rate_place(setup)
    value = f"{rate:.0e}".replace("e-0", "e-")
    function = optimizer.kind if optimizer.user_built else "TrainingArguments"
    if optimizer.rate_given:  # where it is written, by keyword
        function = ""
    edits = (SetKeyword(where.file, where.line, name, value, function),) if where else ()
    return Fix(does=f"set {name}={value}", safety=Safety.UNSAFE, edits=edits)


def _set_argument(setup: SetupFacts, optimizer: OptimizerFacts, rate: float) -> Fix:
    """The same for an optimizer that is given to the framework, as an object or by its name."""
    where, value = rate_place(setup), f"{rate:.0e}".replace("e-0", "e-")
    if not optimizer.named_by_string:
        edit = (
            (SetKeyword(where.file, where.line, optimizer.rate_keyword, value, optimizer.kind),)
            if where
            else ()
        )
        return Fix(does=f"set {optimizer.rate_keyword}={value}", safety=Safety.UNSAFE, edits=edit)
    prefix = f"{optimizer.library}.optimizers." if optimizer.library else ""
    built = f"{prefix}{optimizer.kind}({optimizer.rate_keyword}={value})"
    edit = (SetKeyword(where.file, where.line, "optimizer", built, "compile"),) if where and prefix else ()
    return Fix(does=f"pass {built} as the optimizer", safety=Safety.UNSAFE, edits=edit)


def keep_rate(factor: float) -> Repair:
    """The repair that keeps the rate that was found."""
    return scale_learning_rate(factor)


def mean(values: tuple[float, ...]) -> float:
    """Their mean."""
    return sum(values) / len(values)
