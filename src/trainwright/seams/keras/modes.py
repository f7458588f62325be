"""The mode, training or evaluation, in which layers with dropout or batch statistics are really called."""

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
    """Watches a model's training-only layers while it is entered.

    Keras takes the mode with each call, usually passes it to inner layers, and defaults to evaluation. A call inside a
    model in training mode that explicitly asks for evaluation is deliberate, so it is not recorded.
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
        """Restore the layers' calls, including any that a repair has changed since."""
        for layer, call in self._calls:
            vars(layer).pop("call", None)
            if call is not None:
                object.__setattr__(layer, "call", call)

    @contextlib.contextmanager
    def calling(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], caller: FrameType | None) -> Iterator[None]:
        """Record a call of a layer.

        Args:
            caller: the frame that calls a layer, usually the whole model, from outside all others; None: called by a
                layer.
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
        """Whether any of the layers was called in training mode, or none was called."""
        return bool(self._active) or not self._inactive

    @property
    def inactive(self) -> dict[str, Place | None]:
        """The layers called only in evaluation mode, each with the user's line that called the outermost layer."""
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
    """The mode passed to a call; None for none. A tensor counts as training."""
    mode = kwargs.get("training", next((a for a in args[1:] if isinstance(a, bool)), None))
    return mode if mode is None else bool(mode) if isinstance(mode, (bool, int)) else True
