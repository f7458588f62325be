"""An optimizer of torch in numbers: its groups, its first update, its schedule dry-run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trainwright.adapters.torch_schedule import dry_run
from trainwright.core.finding import Failure
from trainwright.stages.optimizer import GroupFacts, OptimizerFacts


def optimizer_facts(trainer: Any, before: Mapping[str, torch.Tensor], failure: Failure | None, *,
                    user_built: bool, planned: int | None, rate_given: bool = True,
                    schedule_given: bool = False, schedule_first: bool = False) -> OptimizerFacts:  # fmt: skip
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
    dry = dry_run(trainer, planned)
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
        schedule=dry.points,
        schedule_kind=dry.kind,
        schedule_given=schedule_given,
        schedule_length=dry.length,
        schedule_failure=dry.failure,
        schedule_first=schedule_first,
        planned_updates=planned,
        warmup_updates=trainer.args.get_warmup_steps(planned) if planned and not schedule_given else None,
    )


def _group(group: Mapping[str, Any], names: Mapping[int, str]) -> GroupFacts:
    simple = {
        k: v for k, v in group.items() if isinstance(v, (int, float, str)) and k not in ("lr", "weight_decay")
    }
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
