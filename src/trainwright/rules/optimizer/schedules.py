"""Schedules of the learning rate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Place, Proof, Role, Severity, rule
from trainwright.rules.fixes import safe
from trainwright.stages import OptimizerFacts, SetupFacts, Words

# A rate at a thousandth of its peak changes almost nothing; healthy decays get there at the end of the run, if ever.
SPENT = 1e-3
# ... and not before this share of it.
SPENT_BEFORE = 0.5
# A length counted in micro-batches is that many times too long; rounding of the last batch moves it by a few percent.
SAME_LENGTH = 0.05
# A schedule this many times too long or too short counts another unit; smaller differences are a matter of taste.
FEWEST_TIMES = 4
# A rate above this share of its peak at the end of the run has hardly begun to fall.
HARDLY_FALLEN = 0.9
# A rate that ends below this share of the set one, and in the second half has grown by this factor, is warming up.
STILL_WARMING, RISING = 0.7, 1.2
# Shorter runs are test runs of the script; their schedules mean nothing.
FEWEST_UPDATES = 10

# Updates, and the share of its peak that the rate has there.
Points = tuple[tuple[int, float], ...]


@rule("TW608", Severity.WARNING, foretells=Fate.SPOILS_THE_PLAN)
def schedule_in_wrong_unit(optimizer: OptimizerFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A schedule that ends early, is still warming up at the end, or counts micro-batches or rows."""
    planned, points = optimizer.planned_updates, optimizer.schedule
    if planned is None or planned < FEWEST_UPDATES:
        return
    said = None
    if optimizer.schedule_failure is not None:
        said = f"the schedule raises before the last of {planned} updates ({optimizer.schedule_failure.message[:80]})"
    elif points:
        said = (
            _spent(points, planned)
            or _warming(points, planned, optimizer)
            or _rising(points, planned, optimizer)
            or _too_long(points, planned, optimizer, setup)
            or _of_rows(points, planned, optimizer, setup)
            or _swinging(points, planned, optimizer, setup)
            or _hardly_stepped(planned, optimizer)
            or _over_within_epochs(points, planned, optimizer, setup)
        )
    if said is None:
        yield from _unmoved(planned, optimizer, setup)
        return
    ends = f"{points[-1][1]:.3g}" if points else "unknown"
    yield Finding(
        message=said,
        measured={
            **_plan(planned, setup),
            "last_factor": ends,
            "schedule": optimizer.schedule_kind,
            **({"length": optimizer.schedule_length} if optimizer.schedule_length else {}),
        },
        where=_schedule_place(optimizer, setup),
        proof=_seen_rates(points, planned, optimizer),
        fix=Fix(does=_advice_on_length(planned, optimizer, setup)),
    )


def _plan(planned: int, setup: SetupFacts) -> dict[str, int]:
    several = {"batches_per_update": setup.accumulation} if setup.accumulation > 1 else {}
    return {"planned_updates": planned, **several}


def _schedule_place(optimizer: OptimizerFacts, setup: SetupFacts) -> Place | None:
    if optimizer.schedule_given:
        return setup.place(Role.SCHEDULER, Role.OPTIMIZER, Role.CREATE_SCHEDULER)
    return setup.place(
        Role.WARMUP_STEPS, Role.LR_SCHEDULER_TYPE, Role.LR_SCHEDULER_KWARGS, Role.ARGUMENTS, Role.TRAINER
    )


def _seen_rates(points: Points, planned: int, optimizer: OptimizerFacts) -> Proof:
    """The rates, with where they are from: the run's own updates, its schedule run dry over the others, or over all."""
    if not points:
        raised = optimizer.schedule_failure.type if optimizer.schedule_failure is not None else ""
        return Proof(f"in a dry run, it raised {raised}")
    seen = optimizer.schedule_seen
    first = f"{seen} update{'s' if seen > 1 else ''} of the run, then a dry run"
    source = "in the run" if seen >= planned else first if seen else "in a dry run"
    few = points[:: max(1, len(points) // 5)]
    return Proof(f"{source}: " + ", ".join(f"update {u}: {f:.3g}" for u, f in few) + " of its peak")


def _advice_on_length(planned: int, optimizer: OptimizerFacts, setup: SetupFacts) -> str:
    steps, direction = optimizer.schedule_steps, optimizer.schedule_direction
    if direction:
        better, not_so = ("higher", "a loss") if direction == "max" else ("lower", "a score")
        words = setup.words if setup.automatic_steps else Words()
        return (
            f'the schedule has mode="{direction}": {words.followed} that is the better the {better} it is, which {not_so} is not; '
            f"if it is such a number, a larger patience ({optimizer.schedule_patience} so far), factor or min_lr"
        )
    if _rising(optimizer.schedule, planned, optimizer) is not None and steps is not None and steps < planned:
        return f"{setup.words.schedule_per_update}, or count its warm-up in epochs"
    if optimizer.schedule_failure is not None and optimizer.schedule_length is None:
        return f"make the schedule provide a rate for each of its {steps or planned} steps"
    if optimizer.schedule_length is None and steps is not None and steps < planned:
        return f"let the rate decay over all {steps} steps that the schedule takes in {planned} updates"
    return f"give the schedule its length in updates: {planned}, and a warm-up well below that"


def _unmoved(planned: int, optimizer: OptimizerFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A schedule that keeps its first rate until after the end of the run."""
    moves_at = optimizer.schedule_moves_at
    if moves_at is None:
        return
    yield Finding(
        message=f"the schedule keeps its first rate over all {planned} planned updates: it changes only after about {moves_at}",
        measured={**_plan(planned, setup), "moves_at": moves_at, "schedule": optimizer.schedule_kind},
        severity=Severity.NOTE,
        where=_schedule_place(optimizer, setup),
        proof=Proof("a dry run over the planned updates, and a look at the rates beyond them"),
        fix=Fix(does=f"give the schedule its length in updates: {planned}"),
    )


def _spent(points: Points, planned: int) -> str | None:
    peak = max(f for _, f in points)
    alive = [u for u, f in points if f > SPENT * peak]
    last = max(alive, default=0)
    if peak <= 0 or last >= SPENT_BEFORE * planned:
        return None
    return (
        f"the rate has decayed after update {last + 1} of {planned}: from there on it stays below {SPENT:g} of its peak"
    )


def _warming(points: Points, planned: int, optimizer: OptimizerFacts) -> str | None:
    warmup = optimizer.warmup_updates
    if warmup is None or warmup < planned or optimizer.schedule_given:
        return None
    return f"the warm-up ends after {warmup} updates, but the run has {planned}: the rate reaches {points[-1][1]:.0%} of its setting"


def _rising(points: Points, planned: int, optimizer: OptimizerFacts) -> str | None:
    """A rate that rises all the time and ends far below the one that was set: the warm-up does not end."""
    factors = [f for _, f in points]
    rises = all(a <= b for a, b in itertools.pairwise(factors)) and factors[-1] > RISING * factors[len(factors) // 2]
    if not rises or factors[-1] > STILL_WARMING:
        return None
    steps = optimizer.schedule_steps
    taken = f", with {steps} steps of the schedule," if steps is not None and steps < planned else ""
    return f"the rate still rises at the last of {planned} updates{taken} and reaches {factors[-1]:.0%} of the set rate"


def _too_long(points: Points, planned: int, optimizer: OptimizerFacts, setup: SetupFacts) -> str | None:
    length, times = optimizer.schedule_length, setup.accumulation
    if length is None or times < 2 or abs(length / planned / times - 1) > SAME_LENGTH:
        return None
    return (
        f"the schedule is {length} updates long, but the run has {planned}: it counts micro-batches, {times} per update, "
        f"and ends at {points[-1][1]:.0%} of its peak"
    )


def _of_rows(points: Points, planned: int, optimizer: OptimizerFacts, setup: SetupFacts) -> str | None:
    """A schedule as long as the number of rows in all epochs; an epoch's last batch may have as few as one row."""
    length, size, epochs = optimizer.schedule_length, setup.batch_size * setup.accumulation, setup.epochs
    if length is None or not epochs or size < FEWEST_TIMES or points[-1][1] < HARDLY_FALLEN:
        return None
    if not planned * size - epochs * (size - 1) <= length <= planned * size:
        return None
    return (
        f"the schedule is {length} updates long, as many as there are rows in all epochs, and the run has {planned}: it "
        f"ends at {points[-1][1]:.0%} of its peak"
    )


def _swinging(points: Points, planned: int, optimizer: OptimizerFacts, setup: SetupFacts) -> str | None:
    """A schedule as long as the number of epochs, but stepped at each update: the rate falls and rises repeatedly."""
    length, epochs = optimizer.schedule_length, setup.epochs
    if length is None or not epochs or abs(length / epochs - 1) > SAME_LENGTH or length * FEWEST_TIMES > planned:
        return None
    high = [f > 0.5 * max(f for _, f in points) for _, f in points]
    rises = sum(not before and after for before, after in itertools.pairwise(high))
    if rises < 2:
        return None
    return (
        f"the schedule is {length} steps long, as many as there are epochs, and is stepped {optimizer.schedule_steps or planned} "
        f"times: the rate falls and rises again {rises} times"
    )


def _hardly_stepped(planned: int, optimizer: OptimizerFacts) -> str | None:
    """A schedule whose length is in updates, but that is stepped once per epoch."""
    length, steps = optimizer.schedule_length, optimizer.schedule_steps
    if length is None or not steps or length < FEWEST_TIMES * planned or steps >= planned:
        return None
    return (
        f"the schedule is stepped {steps} times in {planned} updates, and at that pace takes {length} of them: it ends at "
        "its beginning"
    )


def _over_within_epochs(points: Points, planned: int, optimizer: OptimizerFacts, setup: SetupFacts) -> str | None:
    """A decay that ends after as many steps as there are epochs, although the schedule is stepped at each update."""
    length, epochs, last = optimizer.schedule_length, setup.epochs, points[-1][1]
    if not length or not epochs or length > epochs or length * FEWEST_TIMES > planned:
        return None
    if planned < FEWEST_TIMES * epochs:  # an update is nearly an epoch
        return None
    if (optimizer.schedule_steps or 0) < planned or last > HARDLY_FALLEN * max(f for _, f in points):
        return None
    if any(abs(f - last) > SAME_LENGTH * last for u, f in points if u > length):
        return None
    return (
        f"the schedule is over after {length} steps, the run has {epochs:g} epochs, and it is stepped at each of {planned} "
        f"updates: from update {length} on the rate is {last:.2g} of its peak"
    )


@rule("TW609", Severity.WARNING)
def schedule_before_optimizer(optimizer: OptimizerFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A schedule that is advanced before the first update."""
    if not optimizer.schedule_first:
        return
    yield Finding(
        message="the schedule is advanced before the optimizer has updated the weights: the first rate of the schedule is "
        "never used",
        measured={"schedule": optimizer.schedule_kind},
        where=setup.place(Role.SCHEDULE_STEP, Role.TRAINING_STEP, Role.COMPUTE_LOSS, Role.TRAINER),
        proof=Proof("the schedule's step() was called, and the optimizer's had not been"),
        fix=safe(
            f"leave the schedule's step() out: {setup.words.trainer} calls it"
            if setup.automatic_steps
            else "call the schedule's step() after the optimizer's"
        ),
    )
