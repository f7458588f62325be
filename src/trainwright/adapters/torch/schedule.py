"""A dry run of a torch schedule on a stand-in optimizer."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from trainwright.core.finding import Failure
from trainwright.seams.failures.blame import failure_of

# Up to this many updates, step through the whole schedule, otherwise only through its beginning.
LONGEST_DRY_RUN = 20_000
POINTS = 200
# The attributes in which schedules store their length: OneCycleLR, CosineAnnealingLR, LinearLR and PolynomialLR.
_LENGTHS = ("total_steps", "T_max", "total_iters")


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """What a schedule does over the planned updates."""

    points: tuple[tuple[int, float], ...] = ()
    """(update, factor of the peak rate)."""
    kind: str = ""
    length: int | None = None
    """In updates."""
    failure: Failure | None = None


def stand_in_schedule(trainer: Any, planned: int | None) -> Any:
    """The Trainer's schedule, or a copy of the script's own, on an empty optimizer; None if there is none."""
    given = trainer.lr_scheduler
    if given is not None:
        return copy.deepcopy(given, {id(given.optimizer): _stand_in(given.optimizer)}) if _can_run(given) else None
    if not planned:
        return None
    try:
        schedule = trainer.create_scheduler(planned, _stand_in(trainer.optimizer))
        return schedule if _can_run(schedule) else None
    finally:
        trainer.lr_scheduler = None


def dry_run(trainer: Any, planned: int | None) -> DryRun:
    """Step the schedule as often as training would, without advancing the Trainer's or the script's own."""
    if not planned:
        return DryRun()
    try:
        schedule = stand_in_schedule(trainer, planned)
    except Exception as error:  # a user's schedule that cannot be built
        return DryRun(failure=failure_of(error))
    if schedule is None:
        return DryRun()
    points, failure = _points(schedule, planned)
    return DryRun(points=points, kind=type(schedule).__name__, length=length_of(schedule), failure=failure)


def length_of(schedule: Any) -> int | None:
    """A schedule's number of steps, if it says so."""
    lambdas = getattr(schedule, "lr_lambdas", None)
    if lambdas:
        found = getattr(lambdas[0], "keywords", {}).get("num_training_steps")
    elif milestones := getattr(schedule, "milestones", None):
        found = max(milestones)
    else:
        found = next((v for n in _LENGTHS if (v := getattr(schedule, n, None)) is not None), None)
    return int(found) if isinstance(found, (int, float)) else None


def _can_run(schedule: Any) -> bool:
    """False for schedules that follow a metric, which cannot be dry-run."""
    return (
        "ReduceLROnPlateau" not in {k.__name__ for k in type(schedule).__mro__}
        and type(schedule).__name__ != "GreedyLR"
    )


def _stand_in(optimizer: Any) -> Any:
    """An optimizer with the groups' rates and options, and one number in each."""
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 1.0}]
    if optimizer is not None and optimizer.param_groups:
        groups = [{**g, "params": [torch.nn.Parameter(torch.zeros(1))]} for g in optimizer.param_groups]
    made = torch.optim.SGD([{"params": g["params"], "lr": g.get("lr", 1.0)} for g in groups], lr=1.0)
    for group, kept in zip(made.param_groups, groups):
        group.update(kept)
    made.defaults = {**made.defaults, **getattr(optimizer, "defaults", {})}  # polynomial decay reads its rate there
    return made


def _points(schedule: Any, planned: int, pace: float = 1.0) -> tuple[tuple[tuple[int, float], ...], Failure | None]:
    groups = schedule.optimizer.param_groups
    peak = max((g.get("max_lr", g.get("initial_lr", g["lr"])) for g in groups), default=0.0) or 1.0
    steps = min(planned, LONGEST_DRY_RUN)
    every = max(1, steps // POINTS)
    points = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for update in range(steps):
            if update % every == 0 or update == steps - 1:
                points.append((update, float(max(g["lr"] for g in groups)) / peak))
            try:
                for _ in range(int((update + 1) * pace + 1e-6) - int(update * pace + 1e-6)):
                    schedule.step()
            except Exception as error:  # the user's schedule raised, which is a finding
                return tuple(points), failure_of(error)
    return tuple(points), None
