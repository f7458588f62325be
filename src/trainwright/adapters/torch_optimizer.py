"""An optimizer of torch in numbers: its groups, its first update, its schedule dry-run."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trainwright.core.finding import Failure
from trainwright.stages.optimizer import GroupFacts, OptimizerFacts

# The schedule is stepped through in full up to this many updates, else through its first ones.
LONGEST_DRY_RUN = 20_000
POINTS = 200


def optimizer_facts(trainer: Any, before: Mapping[str, torch.Tensor], failure: Failure | None, *,
                    user_built: bool, planned: int | None, rate_given: bool = True) -> OptimizerFacts:  # fmt: skip
    """The facts of a Trainer's optimizer after one update.

    Args:
        before: the trainable parameters' values before it.
    """
    optimizer, model = trainer.optimizer, trainer.model
    names = {id(p): n for n, p in model.named_parameters()}
    held = [p for g in optimizer.param_groups for p in g["params"]]
    changed = {}
    for name, parameter in model.named_parameters():
        if name in before and before[name].shape == parameter.shape:
            scale = float(before[name].float().norm()) or 1.0
            changed[name] = float((parameter.detach() - before[name]).float().norm()) / scale
    inner = getattr(optimizer, "optimizer", optimizer)
    schedule, kind = dry_run(trainer, planned)
    return OptimizerFacts(
        failure=failure,
        kind=type(inner).__name__,
        groups=tuple(_group(g, names) for g in optimizer.param_groups),
        learning_rate=max((float(g["lr"]) for g in optimizer.param_groups), default=0.0),
        user_built=user_built,
        rate_given=rate_given,
        trainable=tuple(n for n, p in model.named_parameters() if p.requires_grad),
        held=tuple(names[id(p)] for p in held if id(p) in names),
        foreign=sum(id(p) not in names for p in held),
        changed=changed,
        schedule=schedule,
        schedule_kind=kind,
        planned_updates=planned,
        warmup_updates=trainer.args.get_warmup_steps(planned) if planned and not user_built else None,
    )


def _group(group: Mapping[str, Any], names: Mapping[int, str]) -> GroupFacts:
    simple = {k: v for k, v in group.items() if isinstance(v, (int, float, str)) and k not in ("lr", "weight_decay")}
    return GroupFacts(
        parameters=sum(p.numel() for p in group["params"]),
        tensors=len(group["params"]),
        learning_rate=float(group["lr"]),
        weight_decay=float(group.get("weight_decay", 0.0)),
        options=simple,
        names=tuple(names.get(id(p), "") for p in group["params"]),
    )


def set_rates(optimizer: Any, rates: Sequence[float]) -> None:
    """Give each parameter group its rate."""
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate


def dry_run(trainer: Any, planned: int | None) -> tuple[tuple[tuple[int, float], ...], str]:
    """(update, factor of the peak rate) over the planned updates, on a stand-in for the optimizer."""
    if not planned:
        return (), ""
    with contextlib.suppress(Exception):  # schedules that need metrics cannot be run dry
        stand_in = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        given = trainer.lr_scheduler
        if given is None:
            trainer.lr_scheduler = None
            schedule = trainer.create_scheduler(planned, stand_in)
            trainer.lr_scheduler = None
        elif hasattr(given, "lr_lambdas"):
            schedule = torch.optim.lr_scheduler.LambdaLR(stand_in, given.lr_lambdas[0])
        else:
            schedule = copy.copy(given)
            peak = max((g.get("initial_lr", g["lr"]) for g in given.optimizer.param_groups), default=1.0)
            stand_in = copy.copy(given.optimizer)
            stand_in.param_groups = [{**g, "lr": g["lr"] / peak, "initial_lr": g.get("initial_lr", g["lr"]) / peak}
                                     for g in given.optimizer.param_groups]  # fmt: skip
            schedule.optimizer = stand_in
            schedule.base_lrs = [g["initial_lr"] for g in stand_in.param_groups]
        return _points(schedule, stand_in, planned), type(schedule).__name__
    return (), ""


def _points(schedule: Any, optimizer: Any, planned: int) -> tuple[tuple[int, float], ...]:
    import warnings

    steps = min(planned, LONGEST_DRY_RUN)
    every = max(1, steps // POINTS)
    points = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for update in range(steps):
            if update % every == 0 or update == steps - 1:
                points.append((update, float(max(g["lr"] for g in optimizer.param_groups))))
            schedule.step()
    return tuple(points)
