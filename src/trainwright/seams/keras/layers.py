"""Measurements of a Keras layer and its activation when it is called: part of `seams/keras/watch.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwright.stages.forward import ModuleFacts
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.layers import kernel_of
from trainwright.tensors.keras.which_keras import keras

_RECTIFIERS = ("relu", "relu6")
_SQUASHERS = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "softmax": (0.0, 1.0)}
KINDS = {"relu": "ReLU", "relu6": "ReLU6", "sigmoid": "Sigmoid", "tanh": "Tanh", "softmax": "Softmax"}
# Layers that are only an activation.
LAYERS = ("Softmax", "ReLU")
# Within this distance of either end, a sigmoid's slope is under 0.01 (s(1-s)): hardly any gradient passes.
SATURATED_WITHIN = 0.01


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
        inputs=layer.inputs,
        output=layer.output,
        training=layer.training,
        **shares(name, out),
    )


def shares(function: str, result: Any) -> dict[str, Any]:
    values = tensors.to_numpy(result)
    if values.dtype.kind != "f" or values.ndim < 2 or not values.size:
        return {}
    if function in _RECTIFIERS:
        rows = values.reshape(-1, values.shape[-1])
        return {"dead_share": float((rows <= 0).all(axis=0).mean())}
    if function in _SQUASHERS:
        low, high = _SQUASHERS[function]
        near = (values < low + SATURATED_WITHIN) | (values > high - SATURATED_WITHIN)
        return {"saturated_share": float(near.mean())}
    return {}


def declared_sizes(layer: Any) -> tuple[int, ...]:
    """(in, out) of a dense or convolution layer, (rows, width) of an embedding, (features) of a normalization."""
    if isinstance(layer, keras.layers.Embedding):
        return int(layer.input_dim), int(layer.output_dim)
    kernel = kernel_of(layer) if getattr(layer, "built", False) else None
    if kernel is not None and len(kernel.shape) >= 2:
        return int(kernel.shape[-2]), int(kernel.shape[-1])
    return ()
