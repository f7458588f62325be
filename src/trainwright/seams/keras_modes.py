"""Which mode, training or evaluation, the layers with dropout or batch statistics are really called in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from trainwright.core.finding import Place
from trainwright.seams.place import is_ours, user_place
from trainwright.tensors import keras as tensors


class Modes:
    """Watches the layers of a model that act in training alone, while it is entered.

    Keras takes the mode with each call, hands it on to the layers within, and takes evaluation where nobody says one.
    What a call within says against the call around it is meant; only a mode that nobody said is noted as missing.
    """

    def __init__(self, model: Any) -> None:
        self._layers = {
            name: layer for name, layer in tensors.stochastic_layers(model).items()
            if "training" in inspect.signature(layer.call).parameters
        }  # fmt: skip
        self._asked, self._called_at = False, None  # type: bool, Place | None
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

    def note_outermost(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: FrameType) -> None:
        """A layer, mostly the whole model, is called from outside of all others, with what it is given."""
        self._asked = _is_training(args, kwargs)
        self._called_at = None if is_ours(frame.f_code.co_filename) else user_place(frame)

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
            if self._asked or _is_training(args, kwargs):
                self._active.add(name)
            else:
                self._inactive.setdefault(name, self._called_at)
            return call(*args, **kwargs)

        return noted


def _is_training(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call is told to be one of training; a mode that is a tensor is taken for it."""
    mode = kwargs.get("training", next((a for a in args[1:] if isinstance(a, bool)), None))
    return bool(mode) if isinstance(mode, (bool, int, type(None))) else True
