"""Which mode, training or evaluation, the layers with dropout or batch statistics are really called in."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from trainwright.core.finding import Place
from trainwright.seams.source.places import is_ours, user_place
from trainwright.tensors.keras import objects as tensors


class Modes:
    """Watches the layers of a model that act in training alone, while it is entered.

    Keras takes the mode with each call, mostly hands it on to the layers within, and takes evaluation where nobody says
    one. What a call within a model that trains says to evaluate is meant to; it is not noted.
    """

    def __init__(self, model: Any) -> None:
        self._layers = {
            name: layer
            for name, layer in tensors.stochastic_layers(model).items()
            if "training" in inspect.signature(layer.call).parameters
        }
        self._told: bool | None = None
        self._called_at: Place | None = None
        self._meant = 0
        self._active: set[str] = set()
        self._inactive: dict[str, Place | None] = {}

    def __enter__(self) -> Modes:
        self._calls = [(layer, vars(layer).get("call")) for layer in self._layers.values()]
        for name, layer in self._layers.items():
            object.__setattr__(layer, "call", self._noting(name, layer.call))
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """The layers' calls are what they were, also where a repair has changed them since."""
        for layer, call in self._calls:
            vars(layer).pop("call", None)
            if call is not None:
                object.__setattr__(layer, "call", call)

    @contextlib.contextmanager
    def calling(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], caller: FrameType | None) -> Iterator[None]:
        """A layer is called.

        Args:
            caller: who calls a layer, mostly the whole model, from outside of all others; None: one of these does.
        """
        if caller is not None:
            self._told = _told(args, kwargs)
            self._called_at = None if is_ours(caller.f_code.co_filename) else user_place(caller)
        meant = self._told is True and _told(args, kwargs) is False
        self._meant += meant
        try:
            yield
        finally:
            self._meant -= meant

    @property
    def training(self) -> bool:
        """Whether any of them was called in training mode, or none at all."""
        return bool(self._active) or not self._inactive

    @property
    def inactive(self) -> dict[str, Place | None]:
        """The layers that were called in evaluation mode alone, each with the user's line that called the outermost."""
        return {name: at for name, at in self._inactive.items() if name not in self._active}

    def _noting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def noted(*args: Any, **kwargs: Any) -> Any:
            if _told(args, kwargs):
                self._active.add(name)
            elif not self._meant:
                self._inactive.setdefault(name, self._called_at)
            return call(*args, **kwargs)

        return noted


def _told(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | None:
    """The mode that a call is given; None for none. One that is a tensor is taken for training."""
    mode = kwargs.get("training", next((a for a in args[1:] if isinstance(a, bool)), None))
    return mode if mode is None else bool(mode) if isinstance(mode, (bool, int)) else True
