"""The length of a torch schedule."""

from __future__ import annotations

from typing import Any

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
