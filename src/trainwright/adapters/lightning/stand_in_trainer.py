"""The optimizers and schedules from configure_optimizers, and a stand-in for a LightningModule's trainer."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from trainwright.seams.failures.blame import of_pipeline, passed_on


@dataclass(frozen=True)
class Configured:
    """The result of configure_optimizers, in a uniform shape."""

    optimizers: list[Any] = field(default_factory=list)
    schedules: list[SimpleNamespace] = field(default_factory=list)
    """Each with scheduler, interval, frequency, reduce_on_plateau, monitor."""


def configured(answer: Any) -> Configured:
    """The optimizers and schedules in configure_optimizers' return value.

    Raises:
        TypeError: for a value that Lightning would reject.
    """
    if answer is None:
        return Configured()
    if _steps(answer):
        return Configured([answer])
    if isinstance(answer, Mapping):
        return _joined([answer])
    if isinstance(answer, (list, tuple)):
        if len(answer) == 2 and isinstance(answer[0], (list, tuple)) and all(map(_steps, answer[0])):
            schedules = answer[1] if isinstance(answer[1], (list, tuple)) else [answer[1]]
            return Configured(list(answer[0]), [_schedule(s) for s in schedules])
        if all(isinstance(a, Mapping) for a in answer):
            return _joined(answer)
        if all(map(_steps, answer)):
            return Configured(list(answer))
    raise of_pipeline(
        TypeError(
            "configure_optimizers must return an optimizer, a list of them, two lists (optimizers, schedules) or a "
            f"dictionary with the key 'optimizer'; got {type(answer).__name__}."
        )
    )


def _steps(value: Any) -> bool:
    return hasattr(value, "param_groups") and callable(getattr(value, "step", None))


def _joined(answers: Sequence[Mapping[str, Any]]) -> Configured:
    schedules = [_schedule(a["lr_scheduler"], a.get("monitor")) for a in answers if a.get("lr_scheduler")]
    return Configured([a["optimizer"] for a in answers], schedules)


def _schedule(given: Any, monitor: str | None = None) -> SimpleNamespace:
    options = dict(given) if isinstance(given, Mapping) else {"scheduler": given}
    follows = "ReduceLROnPlateau" in {k.__name__ for k in type(options["scheduler"]).__mro__}
    usual = {"interval": "epoch", "frequency": 1, "reduce_on_plateau": follows, "monitor": monitor}
    return SimpleNamespace(**{**usual, "strict": True, "name": None, **options})


class Nowhere:
    """A logger that accepts everything and stores nothing."""

    log_dir = save_dir = root_dir = "."

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Nowhere:
        return self


class StandIn:
    """The trainer as the module sees it during the walk: at the first epoch, with the module's optimizers, not logging.

    Other attributes come from the real trainer, which is never written to.
    """

    def __init__(self, trainer: Any, module: Any, datamodule: Any) -> None:
        self._trainer = trainer
        self.lightning_module = self.model = module
        self.datamodule = datamodule
        self.loggers = [Nowhere()] if getattr(trainer, "loggers", None) else []
        self.logger = self.loggers[0] if self.loggers else None
        self.training = True
        self.validating = self.sanity_checking = self.testing = self.predicting = self.evaluating = False
        self.current_epoch = self.global_step = 0
        self.should_stop = self.is_last_batch = False
        self.progress_bar_callback = None
        self.optimizers: list[Any] = []
        self.lr_scheduler_configs: list[Any] = []
        self.callback_metrics: dict[str, Any] = {}
        self.logged: dict[str, Any] = {}
        """Everything that was ever logged, with its last value."""
        self.logged_metrics = self.progress_bar_metrics = self.callback_metrics
        self.train_dataloader: Any = None
        self.val_dataloaders: Any = None
        self.num_training_batches: float = math.inf
        self.estimated_stepping_batches: float = math.inf

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return passed_on(getattr, self.__dict__["_trainer"], name)

    def start_over(self) -> None:
        """Restore the state before the first step."""
        self.current_epoch = self.global_step = 0
        self.should_stop = False
        self.callback_metrics.clear()


@contextlib.contextmanager
def attached(module: nn.Module, stand_in: StandIn, datamodule: Any = None) -> Iterator[None]:
    """Attach the stand-in as the trainer of the module and its submodules while the context lasts."""
    kept: list[tuple[dict[str, Any], str, Any]] = []
    for inner in module.modules():
        if "_trainer" in inner.__dict__:
            for name, value in _overrides(inner, stand_in).items():
                _put(inner.__dict__, name, value, kept)
    if datamodule is not None:
        _put(datamodule.__dict__, "trainer", stand_in, kept)
    for optimizer in stand_in.optimizers:
        _put(optimizer.__dict__, "optimizer", optimizer, kept)
        _put(optimizer.__dict__, "toggle_model", _Toggle(module, optimizer), kept)
    try:
        yield
    finally:
        for owner, name, value in reversed(kept):
            if value is _ABSENT:
                owner.pop(name, None)
            else:
                owner[name] = value


_ABSENT = object()


def _put(owner: dict[str, Any], name: str, value: Any, kept: list[tuple[dict[str, Any], str, Any]]) -> None:
    kept.append((owner, name, owner.get(name, _ABSENT)))
    owner[name] = value


def _overrides(module: Any, stand_in: StandIn) -> dict[str, Any]:
    """Replacements for methods that a module's steps call, without a trainer's machinery."""

    def log(
        name: str,
        value: Any,
        prog_bar: bool = False,
        logger: bool | None = None,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if isinstance(value, torch.Tensor):
            if value.numel() != 1:
                raise of_pipeline(
                    ValueError(
                        f"`self.log({name}, …)` was called, but the tensor must have a single element; "
                        f"it has the shape {tuple(value.shape)}."
                    )
                )
            value = value.detach()
        stand_in.callback_metrics[name] = value
        # As in Lightning, training logs steps unless told otherwise, and everything else logs epochs.
        forks = (on_step or (on_step is None and stand_in.training)) and (
            on_epoch or (on_epoch is None and not stand_in.training)
        )
        for suffix in ("", "_step", "_epoch") if forks else ("",):
            stand_in.logged[name + suffix] = value

    def log_dict(dictionary: Any, *args: Any, **kwargs: Any) -> None:
        for name, value in dictionary.items():
            log(name, value, *args, **kwargs)

    def optimizers(use_pl_optimizer: bool = True) -> Any:
        return stand_in.optimizers[0] if len(stand_in.optimizers) == 1 else stand_in.optimizers

    def lr_schedulers() -> Any:
        found = [c.scheduler for c in stand_in.lr_scheduler_configs]
        return found[0] if len(found) == 1 else found or None

    def clip_gradients(
        optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: Any = None
    ) -> None:
        limit = stand_in.gradient_clip_val if gradient_clip_val is None else gradient_clip_val
        clip(optimizer, limit, gradient_clip_algorithm or stand_in.gradient_clip_algorithm)

    answers = {
        "_trainer": stand_in,
        "log": log,
        "log_dict": log_dict,
        "optimizers": optimizers,
        "lr_schedulers": lr_schedulers,
        "clip_gradients": clip_gradients,
    }
    if not module.automatic_optimization:  # otherwise Lightning's own method raises
        # A function of torch's, not ours, so that the user's line is the one nearest to the call.
        own = _is_overridden(module, "backward")
        answers["manual_backward"] = module.backward if own else torch.Tensor.backward
    return answers


def _is_overridden(module: Any, name: str) -> bool:
    """Whether a user's class overrides one of Lightning's hooks."""
    return not getattr(type(module), name).__module__.startswith(("lightning.", "pytorch_lightning."))


def clip(optimizer: Any, limit: float | None, algorithm: Any) -> None:
    """Clip the gradients of an optimizer's parameters, by norm or by value."""
    if not limit or limit <= 0:
        return
    parameters = [p for g in optimizer.param_groups for p in g["params"]]
    if str(getattr(algorithm, "value", algorithm)) == "value":
        torch.nn.utils.clip_grad_value_(parameters, limit)
    else:
        torch.nn.utils.clip_grad_norm_(parameters, limit)


class _Toggle:
    """`with optimizer.toggle_model():`, as in Lightning's optimizer wrapper."""

    def __init__(self, module: Any, optimizer: Any) -> None:
        self._module = module
        self._optimizer = optimizer

    @contextlib.contextmanager
    def _toggled(self) -> Iterator[None]:
        self._module.toggle_optimizer(self._optimizer)
        yield
        self._module.untoggle_optimizer(self._optimizer)

    def __call__(self, sync_grad: bool = True) -> Any:
        return self._toggled()
