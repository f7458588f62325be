"""What runs as in training while a model is evaluated: dropout, statistics of the batch, calls of train()."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from trainwright.core.finding import Place
from trainwright.seams.place import user_place
from trainwright.stages.evaluation import ActiveNoise

_DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout)


class EvaluationMode(TorchFunctionMode):
    """Watches one evaluation of a model. The model's `train` is stood before, and given back at the end."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.modes: list[bool] = []
        self.active: dict[tuple[str, Place | None], ActiveNoise] = {}
        self.train_call: Place | None = None
        self._model = model

    @contextlib.contextmanager
    def watching(self) -> Iterator[EvaluationMode]:
        """Watch while the context lasts."""
        hook = self._model.register_forward_pre_hook(lambda module, args: self.modes.append(module.training))
        own = self._model.__dict__.get("train")
        self._model.__dict__["train"] = self._noting(self._model.train)
        try:
            with self:
                yield self
        finally:
            hook.remove()
            self._model.__dict__.pop("train")
            if own is not None:
                self._model.__dict__["train"] = own

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def train(mode: bool = True) -> Any:
            if mode and self.train_call is None:
                self.train_call = user_place(sys._getframe(1))
            return original(mode)

        return train

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = _active(func, args, kwargs)
        if operation is not None:
            where = user_place(sys._getframe(1))
            self.active.setdefault((operation, where), ActiveNoise(operation=operation, where=where))
        return func(*args, **kwargs)


def _active(func: Any, args: Any, kwargs: Any) -> str | None:
    if func in _DROPOUTS:
        share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        return "dropout" if share > 0 and kwargs.get("training", args[2] if len(args) > 2 else True) else None
    if func is F.batch_norm:
        # Without running statistics (track_running_stats=False) those of the batch are what was asked for.
        kept = kwargs.get("running_mean", args[1] if len(args) > 1 else None) is not None
        return "batch_norm" if kept and kwargs.get("training", args[5] if len(args) > 5 else False) else None
    return None
