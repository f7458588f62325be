"""Learning rates and weight decays at which nothing is learned, and the rates that learn it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from statistics import fmean

from trainwright.core import Diagnosis, Finding, Fix, Outcome, Place, Role, Severity, Trial, rule
from trainwright.core.trial import LEARNT_SHARE
from trainwright.rules.fixes import set_keyword, unsafe
from trainwright.rules.repairs import scale_learning_rate, set_weight_decay
from trainwright.stages import ForwardFacts, OptimizerFacts, OverfitFacts, SetupFacts


@rule("TW605", Severity.ERROR)
def excessive_learning_rate(overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts) -> Diagnosis:
    """A rate set by the script, and a lower one that learns what it does not."""
    if not optimizer.rate_given:
        return
    better = yield from better_rate(overfit, optimizer, setup)
    if better is None:
        return
    yield lower_rate_finding(better, optimizer, setup, f"at a learning rate of {optimizer.learning_rate:.3g}")


USUAL_STEPS = 24
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
    whole = max(1.0, updates * share / USUAL_STEPS)
    if rate * whole >= usual:  # all updates together go farther than a few of a usual rate
        return
    outcome = yield Trial(
        change=scale_learning_rate(usual / rate), against=scale_learning_rate(whole), steps=USUAL_STEPS
    )
    still = all(after > (1 - LEARNT_SHARE) * start for after, start in zip(outcome.before, outcome.start))
    if not still or not (outcome.clearly_better or outcome.learns_alone):
        return
    before, after = fmean(outcome.before), fmean(outcome.after)
    yield Finding(
        message=f"at a learning rate of {rate:.3g} all {updates:,} planned updates together take the loss of one batch "
        f"from {fmean(outcome.start):.4g} to {before:.4g}; {USUAL_STEPS} updates at {usual:.3g} take it to {after:.4g}",
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


@rule("TW612", Severity.NOTE)
def decayed_norms(optimizer: OptimizerFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A group without decay that is empty or holds the biases alone, next to a group that decays the norms."""
    spared = [g for g in optimizer.groups if g.weight_decay == 0]
    flat = {p.name for p in forward.parameters if len(p.shape) < 2}
    decayed = [n for g in optimizer.groups if g.weight_decay > 0 for n in g.names if n in flat]
    if not optimizer.user_built or not spared or not decayed:
        return
    what = f"the group without weight decay is empty; {len(decayed)} biases and norms are decayed ({decayed[0]} first)"
    if any(g.tensors for g in spared):
        held = [n for g in spared for n in g.names]
        if not held or not all(n in flat and _is_bias(n) for n in held) or any(_is_bias(n) for n in decayed):
            return
        # The filter matched every bias and not one of the norms' scales.
        what = f"the group without weight decay holds biases only; {len(decayed)} scales of norms are decayed ({decayed[0]} first)"
    yield Finding(
        message=what,
        measured={"decayed": len(decayed), "first": decayed[0]},
        where=setup.place(Role.OPTIMIZER, Role.TRAINER),
        fix=unsafe(f"match the model's parameter names, such as {decayed[0]}"),
    )


def _is_bias(name: str) -> bool:
    return name.rpartition(".")[2] == "bias"


# Usual values end here: 0.3 for AdamW (Dosovitskiy et al. 2021), 5e-4 for SGD, 1e-2 for Adam with a small model.
STRONG = {"AdamW": 1.0}
STRONG_IN_GRADIENT = 0.05
# A step that takes this share off each weight leaves a third of it after a hundred steps. A small rate needs more steps to
# learn a batch without it.
PULLS, MORE_STEPS = 0.01, 64
USUAL = {"AdamW": 0.01}
USUAL_IN_GRADIENT = 1e-4


@rule("TW618", Severity.ERROR, raises=False)
def excessive_weight_decay(optimizer: OptimizerFacts, overfit: OverfitFacts, setup: SetupFacts) -> Diagnosis:
    """A strong weight decay without which one batch is learned clearly better."""
    decay = max((g.weight_decay for g in optimizer.groups), default=0.0)
    if overfit.learnt or decay < STRONG.get(optimizer.kind, STRONG_IN_GRADIENT):
        return
    change = set_weight_decay(0.0)
    outcome = yield Trial(change=change)
    if not (outcome.clearly_better or outcome.learns_alone) and optimizer.learning_rate * decay >= PULLS:
        outcome = yield Trial(change=change, steps=MORE_STEPS)
    if not (outcome.clearly_better or outcome.learns_alone):
        return
    usual = USUAL.get(optimizer.kind, USUAL_IN_GRADIENT)
    yield Finding(
        message=f"with a weight decay of {decay:g}, {len(overfit.losses)} steps on one batch take the loss from "
        f"{overfit.losses[0]:.4g} to {overfit.losses[-1]:.4g}; without it, the batch is learned",
        measured={"weight_decay": decay, "loss": overfit.losses[-1], "usual": usual},
        where=setup.place(Role.WEIGHT_DECAY, Role.OPTIMIZER, Role.ARGUMENTS, Role.TRAINER),
        proof=outcome,
        repair=set_weight_decay(usual),
        fix=unsafe(f"set weight_decay={usual:g}"),
    )


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
    return unsafe(does)


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
    edits = set_keyword(where, name, value, function, position)
    return unsafe(f"set {name}={value}", edits)


def _set_argument(setup: SetupFacts, optimizer: OptimizerFacts, rate: float) -> Fix:
    """The same for an optimizer that is passed to the framework as an object or by name."""
    where, value = rate_place(setup), f"{rate:.0e}".replace("e-0", "e-")
    if not optimizer.named_by_string:
        keyword, position = optimizer.rate_keyword, optimizer.rate_position
        edit = set_keyword(where, keyword, value, optimizer.kind, position)
        return unsafe(f"set {optimizer.rate_keyword}={value}", edit)
    prefix = f"{optimizer.library}.optimizers." if optimizer.library else ""
    built = f"{prefix}{optimizer.kind}({optimizer.rate_keyword}={value})"
    edit = set_keyword(where if prefix else None, "optimizer", built, "compile", position=0)
    return unsafe(f"pass {built} as the optimizer", edit)
