"""Measurements of Keras layers when they are called: activations, sizes, modes (for `seams/keras/observer.py`), and the outputs of all
layers in one pass, to find where two passes begin to differ."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np

from trainwright.core import Place
from trainwright.probes.forward import activation_shares, difference
from trainwright.probes.information import Result
from trainwright.seams.listening.doors import replaced
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.seams.source.places import is_ours, user_place
from trainwright.stages import ModuleFacts, Origin
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.layers import kernel_of
from trainwright.tensors.keras.which_keras import keras

KINDS = {"relu": "ReLU", "relu6": "ReLU6", "sigmoid": "Sigmoid", "tanh": "Tanh", "softmax": "Softmax"}
# Layers that are only an activation.
LAYERS = ("Softmax", "ReLU")


def name_of(function: Any) -> str:
    """softmax, relu; for a layer used as an activation, its type."""
    if function is None:
        return ""
    return str(getattr(function, "__name__", None) or type(function).__name__).lower()


def activation_name(layer: Any) -> str:
    """The activation that a layer calls, or is; empty for none."""
    kind = type(layer).__name__
    return kind.lower() if kind in LAYERS else name_of(getattr(layer, "activation", None))


def activation_of(name: str) -> Callable[[Any], Any]:
    if name == "identity":
        return lambda values: values
    function: Callable[[Any], Any] = keras.activations.get(name)
    return function


def of_activation(layer: ModuleFacts, name: str, result: Any) -> ModuleFacts:
    """A layer's own activation, as if it were a separate layer after it."""
    out = next(t for t in tensors.leaves(result) if tensors.is_tensor(t))
    return ModuleFacts(
        name=layer.name,
        kind=KINDS[name],
        where=layer.where,
        inputs=(),  # what it is given is seen nowhere: Keras calls both in one
        output=layer.output,
        training=layer.training,
        **activation_shares(name, tensors.to_numpy(out)),
    )


def declared_sizes(layer: Any) -> tuple[int, ...]:
    """(in, out) of a dense or convolution layer, (rows, width) of an embedding, (features) of a normalization."""
    if isinstance(layer, keras.layers.Embedding):
        return int(layer.input_dim), int(layer.output_dim)
    kernel = kernel_of(layer) if getattr(layer, "built", False) else None
    if kernel is not None and len(kernel.shape) >= 2:
        return int(kernel.shape[-2]), int(kernel.shape[-1])
    return ()


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


@contextlib.contextmanager
def traced(model: Any, seen: BuiltObjects, keep: Callable[[np.ndarray], np.ndarray | None]) -> Iterator[list[Result]]:
    """Record, in the order in which layers finish, what `keep` returns for the first tensor of each layer's output.

    Only the user's layers count: a layer's own parts, which the library created, add nothing to the layer itself.
    """
    layers = [(path, layer) for path, layer in tensors.named_layers(model).items() if layer in seen.modules]
    names = {id(layer): path for path, layer in layers}
    given: list[Result] = []
    owner = keras.layers.Layer
    original = owner.__call__

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(layer, *args, **kwargs)
        values = [t for t in tensors.leaves(result) if tensors.is_tensor(t) and tensors.has_values(t)]
        kept = keep(tensors.to_numpy(values[0])) if id(layer) in names and values else None
        if kept is not None:
            path = names[id(layer)]
            given.append(Result(path, path, type(layer).__name__, seen.modules[layer], kept))
        return result

    with replaced([(owner, "__call__", call)]):
        yield given


def first_difference(one: list[Result], other: list[Result], beyond: float) -> Origin | None:
    """The first layer whose output differs between two passes by more than a fraction of its scale."""
    for left, right in zip(one, other):
        before, after = left.values, right.values
        if before is None or after is None or left.module != right.module or before.shape != after.shape:
            return None
        if difference(before, after) > beyond:
            return Origin(operation=left.kind, where=left.where, module=left.module)
    return None
