"""Learning-rate experiments shared by several rules: is there a rate at which the same batch is learned?"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from statistics import fmean

from trainwright.core import Finding, Fix, Outcome, Place, Role, Safety, SetKeyword, Trial
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts

# Enough for a rate that works to lower the loss of one batch by a tenth, few enough that three seeds of a
# 20-million-parameter model take half a minute on two cores.
STEPS = 8
# A batch is stuck if more than this share of the first loss is left after the overfit stage's steps; a rate that is
# merely not the best leaves less.
STUCK_SHARE = 0.7
# If the loss never rises along the way, the rate does not make it oscillate; a lower one would only be slower.
RISEN_FACTOR = 1.1
# A single batch can be memorized even if the loss oscillates (rises by this share of the first loss above the lowest so
# far), or if a pre-trained model forgets what it knew. Then several batches are tried in turn: too many for a model to
# memorize quickly, so that the forgotten knowledge is missed.
JUMP_SHARE = 0.25
THROWN_ABOUT = (4, 16)  # batches, steps
FORGETTING = (12, 36)
# There, the script's rate must stay near the loss of a constant prediction on these batches, and a tenth of the rate
# must leave at most LEFT_SHARE of the loss that the script's rate leaves (LEFT_SHARE_ALONE if the constant is unknown).
NEAR_CONSTANT = 0.75
LEFT_SHARE = 0.75
LEFT_SHARE_ALONE = 0.5
# A rate learns if, after a trial's few steps, at most this share of the loss is left.
LEARNING_SHARE = 0.95
# Each rate costs a run of STEPS steps.
MOST_RATES = 3
# Below this rate, no common optimizer learns anything within a usual run.
SMALLEST_RATE = 1e-7
# A schedule that multiplies the rate that is written by more than this is the cause of a rate that is too high.
RISING = 1.5
# Optimizers whose step size is about the rate, whatever the gradient. Usual rates for them: 2e-5 to 2e-4 for a
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
    rows: str
    """The data that both rates were tried on: one batch, 6 batches."""


def is_stuck(overfit: OverfitFacts) -> bool:
    """Whether memorizing one batch failed: the loss rose along the way, and most of it is left."""
    first = overfit.losses[0]
    rose = any(not x <= RISEN_FACTOR * first for x in overfit.losses)
    return rose and (overfit.diverged or overfit.final > STUCK_SHARE * first)


def better_rate(
    overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts
) -> Generator[Trial, Outcome, Better | None]:
    """A lower rate that learns what the script's does not, on one batch or several in turn; None if there is none."""
    if is_stuck(overfit):
        return (yield from _on_one(optimizer, setup))
    if _is_for_new_weights(optimizer, setup):
        return (yield from _on_several(*FORGETTING))
    if _is_thrown_about(overfit):
        return (yield from _on_several(*THROWN_ABOUT))
    return None


def lower_rate_finding(better: Better, optimizer: OptimizerFacts, setup: SetupFacts, start: str) -> Finding:
    """The finding that a lower rate learns what the script's does not.

    Args:
        start: the beginning of the message, which says where the script's rate comes from.
    """
    rate, lower = optimizer.learning_rate, optimizer.learning_rate * better.factor
    before, after = fmean(better.outcome.before), fmean(better.outcome.after)
    risen = max((factor for _, factor in optimizer.schedule), default=1.0)
    reached = f", which its schedule makes of {rate / risen:.3g}," if risen > RISING else ""
    return Finding(
        message=f"{start}{reached} the loss of {better.rows} is {before:.3g} after {better.outcome.steps} updates, at "
        f"{lower:.3g} it is {after:.3g}",
        measured={"learning_rate": rate, "loss": before, "lower_rate": lower, "loss_at_lower_rate": after},
        where=(setup.place(Role.SCHEDULER) if reached else None) or rate_place(setup),
        proof=better.outcome,
        repair=scale_learning_rate(better.factor),
        fix=_lower_schedule(risen, lower) if reached else set_rate(setup, optimizer, lower),
    )


def _lower_schedule(risen: float, lower: float) -> Fix:
    """The fix for a rate that its schedule makes too high; which of its numbers is meant otherwise is not known."""
    does = f"let the schedule rise less: it multiplies the rate that is written by {risen:.3g}; {lower:.1g} at its peak learns"
    return Fix(does=does, safety=Safety.UNSAFE)


def _is_thrown_about(overfit: OverfitFacts) -> bool:
    """Whether the loss rose along the way, above its first value or far above the lowest so far."""
    first, lowest = overfit.losses[0], overfit.losses[0]
    for loss in overfit.losses:
        if loss > RISEN_FACTOR * first or loss > lowest + JUMP_SHARE * first:
            return True
        lowest = min(lowest, loss)
    return False


def _is_for_new_weights(optimizer: OptimizerFacts, setup: SetupFacts) -> bool:
    """Whether a pre-trained model is trained at a rate that is usual for new weights, or higher."""
    return setup.loads_checkpoint and optimizer.kind in ADAPTIVE and optimizer.learning_rate >= NEW_RATE


def _on_several(batches: int, steps: int) -> Generator[Trial, Outcome, Better | None]:
    """A tenth of the rate on several batches, with one seed, then three; None if the script's rate learns them too."""
    factor = 0.1
    for seeds in (1, 3):
        outcome = yield Trial(change=scale_learning_rate(factor), steps=steps, batches=batches, seeds=seeds)
        if outcome.steps < steps or not (seeds == 1 or outcome.clearly_better):
            return None
        before, after = fmean(outcome.before), fmean(outcome.after)
        before = before if before == before else float("inf")
        constant = fmean(outcome.constant) if outcome.constant else None
        near = constant is not None and before >= NEAR_CONSTANT * constant
        if not after <= (LEFT_SHARE if near else LEFT_SHARE_ALONE) * before:
            return None
        if constant is not None and not near:
            return None
    return Better(factor, outcome, f"{batches} batches")


def _on_one(optimizer: OptimizerFacts, setup: SetupFacts) -> Generator[Trial, Outcome, Better | None]:
    """Lower rates on one batch with one seed; the first that learns is tried with three. None if there is none."""
    for factor in _factors(optimizer, setup):
        look = yield Trial(change=scale_learning_rate(factor), steps=STEPS, seeds=1)
        if look.cut_off:
            return None
        loss, start = look.after[0], look.start[0]
        if loss < LEARNING_SHARE * start and not loss > LEARNING_SHARE * look.before[0]:
            outcome = yield Trial(change=scale_learning_rate(factor), steps=STEPS)
            if outcome.clearly_better:
                return Better(factor, outcome, "one batch")
    return None


def _factors(optimizer: OptimizerFacts, setup: SetupFacts) -> list[float]:
    """Factors to try on the rate: first the one that gives a usual rate, then powers of ten."""
    rate = optimizer.learning_rate
    factors = [0.1, 0.01, 0.001, 0.0001]
    if optimizer.kind in ADAPTIVE:
        usual = (PRETRAINED_RATE if setup.loads_checkpoint else NEW_RATE) / rate
        factors = [usual] * (usual < 0.2) + [f for f in factors if not 0.3 < f / usual < 3]
    return [f for f in factors if f * rate >= SMALLEST_RATE][:MOST_RATES]


def rate_place(setup: SetupFacts) -> Place | None:
    """The line where the effective rate is written, or else the line of the object that has it as a default."""
    return setup.place(Role.LEARNING_RATE, Role.OPTIMIZER, Role.ARGUMENTS, Role.TRAINER)


def set_rate(setup: SetupFacts, optimizer: OptimizerFacts, rate: float) -> Fix:
    """The fix that writes another rate where the script writes its own."""
    if optimizer.rate_keyword:
        return _set_argument(setup, optimizer, rate)
    name = "lr" if optimizer.user_built else "learning_rate"
    where = rate_place(setup)
    value = f"{rate:.0e}".replace("e-0", "e-")
    function = optimizer.kind if optimizer.user_built else setup.words.arguments
    position = optimizer.rate_position
    if optimizer.rate_given and position is None:  # where it is written, by keyword
        function = ""
    edits = (SetKeyword(where.file, where.line, name, value, function, position),) if where else ()
    return Fix(does=f"set {name}={value}", safety=Safety.UNSAFE, edits=edits)


def _set_argument(setup: SetupFacts, optimizer: OptimizerFacts, rate: float) -> Fix:
    """The same for an optimizer that is passed to the framework as an object or by name."""
    where, value = rate_place(setup), f"{rate:.0e}".replace("e-0", "e-")
    if not optimizer.named_by_string:
        keyword, position = optimizer.rate_keyword, optimizer.rate_position
        edit = (SetKeyword(where.file, where.line, keyword, value, optimizer.kind, position),) if where else ()
        return Fix(does=f"set {optimizer.rate_keyword}={value}", safety=Safety.UNSAFE, edits=edit)
    prefix = f"{optimizer.library}.optimizers." if optimizer.library else ""
    built = f"{prefix}{optimizer.kind}({optimizer.rate_keyword}={value})"
    edit = (SetKeyword(where.file, where.line, "optimizer", built, "compile", position=0),) if where and prefix else ()
    return Fix(does=f"pass {built} as the optimizer", safety=Safety.UNSAFE, edits=edit)
