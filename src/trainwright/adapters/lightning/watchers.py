"""What follows a metric in a Lightning training, callbacks and schedules, and the metrics that the module logs."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from trainwright.adapters.lightning.fit import Fit
from trainwright.adapters.lightning.stand_in_trainer import StandIn
from trainwright.core.finding import Failure, Place
from trainwright.seams.listening.seen import Seen
from trainwright.seams.source.places import is_users
from trainwright.stages.evaluation import Watcher

_PURPOSES = {"ModelCheckpoint": "keep the best weights", "EarlyStopping": "stop the training"}
# The module's hooks that are run before the metrics are read; metrics logged in others are not known.
_RUN = frozenset(
    ["on_fit_start", "on_train_start", "on_train_epoch_start", "on_train_batch_start", "on_train_batch_end",
     "on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step",
     "on_validation_model_eval", "on_validation_start", "on_validation_epoch_start", "on_validation_epoch_end",
     "on_before_batch_transfer", "on_after_batch_transfer"]
)  # fmt: skip


def measure_watchers(fit: Fit, stand_in: StandIn, seen: Seen) -> tuple[tuple[Watcher, ...], tuple[str, ...]]:
    """What follows a metric, and the names of all logged metrics; no names if some may not have been seen."""
    trainer, module = fit.trainer, fit.module
    if getattr(trainer, "fast_dev_run", False) or getattr(trainer, "limit_val_batches", 1) == 0:
        return (), ()
    names = tuple(stand_in.logged) if _all_seen(trainer, module, stand_in) else ()
    followed = [*_callbacks(trainer, seen), *_schedules(stand_in, seen)]
    texts = _texts(module)
    mentioned = {metric for _, metric, _, _ in followed if metric in texts}
    known = tuple(dict.fromkeys([*names, *sorted(mentioned)])) if names else ()
    return tuple(_watcher(*one, known, stand_in, trainer) for one in followed), known


_Followed = tuple[Any, str, bool, Place | None]


def _callbacks(trainer: Any, seen: Seen) -> Iterator[_Followed]:
    """Lightning's own callbacks that follow a metric: the object, the metric, whether greater is better, the line."""
    for callback in getattr(trainer, "callbacks", None) or ():
        metric, mode = getattr(callback, "monitor", None), getattr(callback, "mode", None)
        follows = type(callback).__name__ in _PURPOSES and _is_lightnings(callback)
        if follows and isinstance(metric, str) and mode in ("min", "max") and getattr(callback, "save_top_k", 1) != 0:
            built = seen.callbacks.get(callback)
            yield callback, metric, mode == "max", built.place if built is not None else None


def _schedules(stand_in: StandIn, seen: Seen) -> Iterator[_Followed]:
    """The schedules that follow a metric."""
    if not stand_in.lightning_module.automatic_optimization:
        return
    for config in stand_in.lr_scheduler_configs:
        schedule = config.scheduler
        mode = getattr(schedule, "mode", None)
        if config.reduce_on_plateau and isinstance(config.monitor, str) and mode in ("min", "max"):
            built = seen.schedules.get(schedule)
            yield config, config.monitor, mode == "max", built.place if built is not None else None


def _watcher(
    follower: Any,
    metric: str,
    greater: bool,
    where: Place | None,
    known: Sequence[str],
    stand_in: StandIn,
    trainer: Any,
) -> Watcher:
    schedule = getattr(follower, "scheduler", None)
    kind = type(follower if schedule is None else schedule).__name__
    taken = list(inspect.signature(type(follower if schedule is None else schedule)).parameters)
    every_epoch = getattr(trainer, "check_val_every_n_epoch", 1) == 1
    raises = bool(known) and metric not in known and every_epoch and getattr(follower, "strict", True)
    return Watcher(
        kind=kind,
        purpose=_PURPOSES.get(kind, "lower the rate"),
        metric=metric,
        position=taken.index("monitor") if schedule is None else None,
        mode_position=taken.index("mode") if "mode" in taken else None,
        in_file_name=re.search(f"{{{re.escape(metric)}[:}}]", str(getattr(follower, "filename", ""))) is not None,
        greater=greater,
        failure=_failure(kind, metric) if raises else None,
        value=_number(stand_in.logged.get(metric)),
        where=where,
    )


def _failure(kind: str, metric: str) -> Failure:
    """What Lightning raises for a metric that was not logged."""
    stops = kind == "EarlyStopping"
    message = f"{'Early stopping' if stops else kind} conditioned on metric {metric} which is not available"
    return Failure(type="RuntimeError" if stops else "MisconfigurationException", message=message, where=None)


def _all_seen(trainer: Any, module: Any, stand_in: StandIn) -> bool:
    """Whether only the steps and hooks that were run can log: no callback of the user's, no other hook."""
    several = isinstance(stand_in.val_dataloaders, (list, tuple, dict)) and len(stand_in.val_dataloaders) > 1
    if several or not all(_is_lightnings(c) for c in getattr(trainer, "callbacks", None) or ()):
        return False
    for kind in _users_classes(module):
        for name, value in vars(kind).items():
            if name.startswith("on_") and name not in _RUN and ".log" in _source(value):
                return False
    return True


def _texts(module: Any) -> set[str]:
    """The strings in the user's module, except in configure_optimizers: names that it may log under a condition."""
    found: set[str] = set()
    for kind in _users_classes(module):
        for name, value in vars(kind).items():
            if name == "configure_optimizers" or not (source := _source(value)):
                continue
            try:
                tree = ast.parse(source)
            except SyntaxError:  # a lambda in the middle of an expression
                continue
            found |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return found


def _users_classes(module: Any) -> list[type]:
    return [
        k for k in type(module).__mro__ if is_users(getattr(inspect.getmodule(k), "__file__", None) or "<built-in>")
    ]


def _source(value: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(value)))
    except (OSError, TypeError):  # not a function
        return ""


def _is_lightnings(value: Any) -> bool:
    return type(value).__module__.startswith(("lightning.", "pytorch_lightning."))


def _number(value: Any) -> float | None:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
