"""The length of a torch schedule, and the rates that it is still to give."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch

from trainwright.seams.failures.blame import tolerated

# The attributes in which schedules store their length: OneCycleLR, CosineAnnealingLR, LinearLR and PolynomialLR.
_LENGTHS = ("total_steps", "T_max", "total_iters")


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


def continue_rates(schedule: Any, count: int) -> list[float]:
    """The highest rates of so many further updates, by a copy of a schedule on another optimizer; fewer where it raises, none of
    one that follows a metric."""
    rates: list[float] = []
    if {k.__name__ for k in type(schedule).__mro__} & {"ReduceLROnPlateau", "GreedyLR"}:
        return rates
    with tolerated(), warnings.catch_warnings():  # the script's own schedule
        warnings.simplefilter("ignore")
        groups = [{**group, "params": [torch.zeros(1)]} for group in schedule.optimizer.param_groups]
        made = torch.optim.SGD(groups, lr=1.0)
        made.defaults |= getattr(schedule.optimizer, "defaults", {})  # polynomial decay reads its rate there
        copied = copy.deepcopy(schedule, {id(schedule.optimizer): made})
        for _ in range(count):
            rates.append(max(float(group["lr"]) for group in made.param_groups))
            copied.step()
    return rates
