"""Training behavior during a model's evaluation: dropout, batch statistics, calls of train()."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from trainwright.core.finding import Place
from trainwright.seams.source.places import user_place
from trainwright.seams.torch.layers import active_noise
from trainwright.stages.evaluation import ActiveNoise


class EvaluationMode(TorchFunctionMode):
    """Watches one evaluation of a model. `model.train` is wrapped for the duration and then restored."""

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
        operation = active_noise(func, args, kwargs)
        if operation is not None:
            where = user_place(sys._getframe(1))
            self.active.setdefault((operation, where), ActiveNoise(operation=operation, where=where))
        return func(*args, **kwargs)
