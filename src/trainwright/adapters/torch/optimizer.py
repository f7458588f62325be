"""Facts about a torch optimizer, its groups and its first update, and about its schedule."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trainwright.adapters.torch.memory import size_of
from trainwright.core import Place
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import BuiltObjects, Construction
from trainwright.seams.source.written import call_node, key_places, keyword_places
from trainwright.stages import GroupFacts, OptimizerFacts

_GROWTH_STEPS = 3
# The attributes in which schedules store their length: OneCycleLR, CosineAnnealingLR, LinearLR and PolynomialLR.
_LENGTHS = ("total_steps", "T_max", "total_iters")


def optimizer_facts(
    optimizers: Sequence[Any],
    model: Any,
    before: Mapping[str, torch.Tensor],
    *,
    user_built: bool,
    rate_given: bool = True,
    rate_position: int | None = None,
    schedule_first: bool = False,
) -> OptimizerFacts:
    """The facts of a training's optimizers after one update.

    Args:
        before: the trainable parameters' values before the update.
    """
    names = {id(p): n for n, p in model.named_parameters()}
    groups = [g for o in optimizers for g in o.param_groups]
    held = [p for g in groups for p in g["params"]]
    changed = {}
    for name, parameter in model.named_parameters():
        if name in before and before[name].shape == parameter.shape:
            scale = float(before[name].float().norm()) or 1.0
            changed[name] = float((parameter.detach() - before[name]).float().norm()) / scale
    kinds = [type(getattr(o, "optimizer", o)).__name__ for o in optimizers]
    return OptimizerFacts(
        kind=kinds[0] if kinds else "",
        weights_bytes=size_of([*model.parameters(), *model.buffers()]),
        gradients_bytes=size_of(p for p in model.parameters() if p.requires_grad),
        state_bytes=size_of(_states(optimizers)),
        groups=tuple(_group(g, names) for g in groups),
        learning_rate=max((float(g["lr"]) for g in groups), default=0.0),
        user_built=user_built,
        rate_given=rate_given,
        rate_position=rate_position,
        trainable=tuple(n for n, p in model.named_parameters() if p.requires_grad),
        held=tuple(names[id(p)] for p in held if id(p) in names),
        foreign=sum(id(p) not in names for p in held),
        changed=changed,
        schedule_first=schedule_first,
    )


def _states(optimizers: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors that optimizers keep."""
    kept = [getattr(getattr(o, "optimizer", o), "state", {}) for o in optimizers]
    return [
        t
        for state in kept
        for s in state.values()
        if isinstance(s, Mapping)
        for t in s.values()
        if isinstance(t, torch.Tensor)
    ]


def _group(group: Mapping[str, Any], names: Mapping[int, str]) -> GroupFacts:
    return GroupFacts(
        tensors=len(group["params"]),
        weight_decay=float(group.get("weight_decay", 0.0)),
        names=tuple(names.get(id(p), "") for p in group["params"]),
    )


def update_growth(optimizer: Any, times: float) -> float | None:
    """How much larger an optimizer's first updates are with gradients that are `times` as large.

    It is about 1 for Adam and its kind, `times` for SGD; None if the class cannot be built on another parameter.
    """
    if optimizer is None:
        return None
    inner = getattr(optimizer, "optimizer", optimizer)
    kind: Any = type(inner)
    taken = inspect.signature(kind).parameters
    options = {k: v for k, v in getattr(inner, "defaults", {}).items() if k in taken}
    moved = []
    for scale in (1.0, times):
        parameter = torch.nn.Parameter(torch.zeros(8, 8))
        try:
            made = kind([parameter], **options)
            for step in range(_GROWTH_STEPS):
                direction = torch.arange(64.0).reshape(8, 8).sub(20 + step).div(64)
                parameter.grad = scale * direction
                made.step()
        except Exception:  # the class may be anyone's, and needs what it was not given
            return None
        moved.append(float(parameter.detach().norm()))
    return moved[1] / moved[0] if moved[0] else None


def set_rates(optimizer: Any, rates: Sequence[float]) -> None:
    """Give each parameter group its rate."""
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate


def peak_rates(optimizer: Any) -> list[float]:
    """Each group's rate that its schedule multiplies: the one it was built with, or the highest of a cycle."""
    return [float(g.get("max_lr", g.get("initial_lr", g["lr"]))) for g in optimizer.param_groups]


def is_rate_written(optimizer: Any, seen: BuiltObjects) -> bool:
    """Whether the script wrote the rate of an optimizer that it built; False if it is the class's default."""
    default = inspect.signature(type(optimizer).__init__).parameters.get("lr")
    rates = {group.get("initial_lr", group["lr"]) for group in optimizer.param_groups}
    if optimizer not in seen.optimizers or default is None or rates != {default.default}:
        return True
    found = seen.optimizers[optimizer]
    call = call_node(found.frame_file, found.line, found.name, end=found.end)
    return call is None or len(call.args) > 1 or any(k.arg in ("lr", None) for k in call.keywords)


def optimizer_places(optimizer: Any, built: Construction, stepped: Sequence[Any] = ()) -> dict[str, Place]:
    """The line that built a script's own optimizer, and that of its rate: there, or where the script sets it later.

    Args:
        stepped: the groups' rates when it was to step, if that is known.
    """
    places = {"optimizer": built.place, "learning_rate": built.place}
    written = keyword_places(built.frame_file, built.line, built.name, end=built.end)
    for keyword, role in (("lr", "learning_rate"), ("weight_decay", "weight_decay")):
        if keyword in written:
            places[role] = written[keyword][0]
    if _is_rate_set_later(optimizer, stepped) and (stored := key_places(built.frame_file, "lr", stored=True)):
        places["learning_rate"] = stored[0]
    return places


def _is_rate_set_later(optimizer: Any, stepped: Sequence[Any]) -> bool:
    """Whether no group has the rate that the optimizer was built with, and no schedule set another."""
    groups, given = optimizer.param_groups, getattr(optimizer, "defaults", {}).get("lr")
    rates = stepped or [g["lr"] for g in groups]
    return given is not None and not any("initial_lr" in g for g in groups) and given not in rates


def schedule_facts(schedule: Any, steps: int = 0) -> dict[str, Any]:
    """What a schedule says of itself: its kind, its number of steps, and what it follows.

    Args:
        steps: that it has made in this training; those before it, of a resumed one, are no part of its length.
    """
    is_plateau, length = hasattr(schedule, "num_bad_epochs"), _length_of(schedule)
    before = max(0, int(getattr(schedule, "last_epoch", 0) or 0) - steps)
    return {
        "schedule_kind": type(schedule).__name__,
        "schedule_length": max(0, length - before) if length is not None else None,
        "schedule_direction": str(getattr(schedule, "mode", "")) if is_plateau else "",
        "schedule_patience": getattr(schedule, "patience", None) if is_plateau else None,
    }


def _length_of(schedule: Any) -> int | None:
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
