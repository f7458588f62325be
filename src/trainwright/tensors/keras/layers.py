"""Keras's layers by name, and changes to them; part of `tensors/keras/objects.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.core import PartMissing
from trainwright.tensors.keras.which_keras import keras, ops, version


def named_layers(model: Any) -> dict[str, Any]:
    """Every layer by its dotted path from the model; the model itself has the empty name."""
    found: dict[str, Any] = {"": model}
    known = {id(model)}

    def below(owner: Any, prefix: str) -> None:
        for layer in owner._flatten_layers(recursive=False, include_self=False):
            if id(layer) in known:
                continue
            known.add(id(layer))
            name = _unused(f"{prefix}{layer.name}", found)
            found[name] = layer
            below(layer, f"{name}.")

    below(model, "")
    return found


def named_variables(model: Any) -> dict[str, tuple[str, Any]]:
    """Every weight by its dotted name, with its layer's path; random seeds do not count."""
    found: dict[str, tuple[str, Any]] = {}
    known: set[int] = set()
    for path, layer in reversed(named_layers(model).items()):  # the innermost owner names it
        for variable in layer.weights:
            if id(variable) not in known:
                known.add(id(variable))
                name = version().name_of(variable)
                found[_unused(f"{path}.{name}" if path else name, found)] = (path, variable)
    order = {id(v): i for i, v in enumerate(model.weights)}
    return dict(sorted(found.items(), key=lambda one: order.get(id(one[1][1]), len(order))))


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    number, result = 1, name
    while result in taken:
        result, number = f"{name}_{number}", number + 1
    return result


def value_of(variable: Any) -> np.ndarray:
    """A variable's values."""
    array = np.asarray(ops.convert_to_numpy(version().raw(variable)))
    return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array


def freeze(model: Any, names: Sequence[str]) -> None:
    layers = named_layers(model)
    for name, (path, variable) in named_variables(model).items():
        if name in names:
            version().set_trainable(layers[path], variable, False)


def unfreeze(model: Any, optimizer: Any, names: Sequence[str] | None = None) -> None:
    layers = named_layers(model)
    for name, (path, variable) in named_variables(model).items():
        if names is not None and name not in names:
            continue
        for around in layers_around(layers, path):
            object.__setattr__(around, "_trainable", True)
        if not _is_statistic(variable):
            version().set_trainable(layers[path], variable, True)


def layers_around(layers: Mapping[str, Any], path: str) -> Iterator[Any]:
    """The layer at a path and the layers that contain it, up to the model.

    Args:
        layers: the model's layers by path; their own names may contain dots: mobilenetv2_0.35_96.
    """
    while path:
        if path in layers:
            yield layers[path]
        path = path.rpartition(".")[0]
    yield layers[""]


def _is_statistic(variable: Any) -> bool:
    return version().name_of(variable).startswith(("moving_", "mean", "variance", "count"))


def widen_head(model: Any, classes: int) -> str:
    """Give the model's output layer `classes` outputs, keeping its old ones; return the layer's name."""
    name, layer = head_of(model)
    for variable, axis in ((kernel_of(layer), 1), (layer.bias, 0)):
        if variable is not None:
            values = value_of(variable)
            more = _more(values, axis, classes - layer.units)
            version().resize(layer, variable, np.concatenate([values, more], axis=axis))
    layer.units = classes
    forget_parameters(model)
    return name


def kernel_of(layer: Any) -> Any:
    """The kernel of a dense or convolution layer; None if there is none, or none yet."""
    return next((k for n in ("_kernel", "kernel") if (k := getattr(layer, n, None)) is not None), None)


def _table_of(layer: Any) -> Any:
    """An embedding's rows."""
    return next(t for n in ("_embeddings", "embeddings") if (t := getattr(layer, n, None)) is not None)


def resize_embeddings(model: Any, rows: int, name: str = "") -> None:
    """Give the named embedding `rows` rows; without a name, the first embedding."""
    layers = named_layers(model)
    found = [la for la in layers.values() if isinstance(la, keras.layers.Embedding)]
    layer = layers.get(name) or next(iter(found))
    values = value_of(_table_of(layer))
    more = np.random.default_rng(0).normal(0, float(values.std()) or 0.05, (rows - len(values), values.shape[1]))
    version().resize(layer, _table_of(layer), np.concatenate([values, more.astype(values.dtype)]))
    layer.input_dim = rows
    forget_parameters(model)


def forget_parameters(model: Any) -> None:
    """Make layers of the torch backend update their parameter lists."""
    for layer in named_layers(model).values():
        getattr(layer, "_modules", {}).pop("_torch_params", None)


def head_of(model: Any) -> tuple[str, Any]:
    """The last dense layer, in the order of the layers.

    Raises:
        ValueError: if there is none.
    """
    dense = [(n, la) for n, la in named_layers(model).items() if isinstance(la, keras.layers.Dense)]
    if not dense:
        raise ValueError("the model must have a Dense layer; it has none.")
    return dense[-1]


def _more(values: np.ndarray, axis: int, count: int) -> np.ndarray:
    shape = list(values.shape)
    shape[axis] = count
    if values.ndim == 1:
        return np.zeros(shape, values.dtype)
    return np.random.default_rng(0).normal(0, float(values.std()) or 0.01, shape).astype(values.dtype)


def layers_below(value: Any, depth: int = 4) -> list[Any]:
    """The layers in an object's lists, dictionaries and attributes of plain objects; for a layer, the layer itself."""
    if isinstance(value, keras.layers.Layer):
        return [value]
    if depth == 0 or isinstance(value, (str, bytes, int, float, np.ndarray, type(None), type)):
        return []
    if isinstance(value, (list, tuple, set)):
        members = list(value)
    elif isinstance(value, dict):
        members = list(value.values())
    elif type(value).__module__.split(".")[0] in ("keras", "tensorflow", "torch", "jax", "numpy"):
        return []
    else:
        members = list(getattr(value, "__dict__", {}).values())
    return [layer for member in members for layer in layers_below(member, depth - 1)]


def register_lists(model: Any, names: Sequence[str]) -> None:
    """Register the layers in these attributes as part of the model."""
    for name in names:
        path, _, attribute = name.rpartition(".")
        owner = named_layers(model)[path]
        for layer in layers_below(getattr(owner, attribute)):
            if not any(layer is one for one in owner._layers):
                list.append(owner._layers, layer)


def set_dropout(model: Any, probability: float) -> None:
    for layer in named_layers(model).values():
        if isinstance(getattr(layer, "rate", None), (int, float)) and "ropout" in type(layer).__name__:
            layer.rate = probability
        held = vars(layer).get("dropout")  # a recurrent layer's is that of its cell, which is a layer by itself
        if isinstance(held, float) and held:
            layer.dropout = probability


def mask_padding(model: Any, embedding: str) -> None:
    for layer in named_layers(model).values():
        if layer.name == embedding:
            layer.mask_zero = layer.supports_masking = True


def zero_non_finite(model: Any) -> None:
    for _, variable in named_variables(model).values():
        values = value_of(variable)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            variable.assign(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))


def reinitialise(model: Any, names: Sequence[str]) -> None:
    for name, (_, variable) in named_variables(model).items():
        if name in names:
            draw = keras.initializers.GlorotUniform(seed=0) if len(variable.shape) > 1 else None
            variable.assign(draw(variable.shape) if draw else ops.zeros(variable.shape))


def scale_parameters(model: Any, factors: Mapping[str, float]) -> None:
    for name, (_, variable) in named_variables(model).items():
        if name in factors:
            variable.assign(version().raw(variable) * factors[name])


def is_stochastic(layer: Any) -> bool:
    """Whether a layer has dropout or batch statistics, which behave differently in training."""
    kind = type(layer).__name__
    return kind == "BatchNormalization" or ("ropout" in kind and bool(getattr(layer, "rate", 0)))


def stochastic_layers(model: Any) -> dict[str, Any]:
    """The layers with dropout or batch statistics, by name."""
    return {name: layer for name, layer in named_layers(model).items() if is_stochastic(layer)}


def activate(model: Any, names: Sequence[str]) -> None:
    """Call these layers in training mode, whatever mode is passed, until the step is over."""
    for name, layer in named_layers(model).items():
        if name in names:
            object.__setattr__(layer, "call", _in_training(layer.call))


def _in_training(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def active(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **{**kwargs, "training": True})

    return active


def resize_input(model: Any, layer: str, size: int) -> None:
    raise PartMissing("a Keras layer takes its input size when it is built")


def flatten_before(model: Any, layer: str) -> None:
    """Flatten all axes but the first of a layer's input."""
    owner = named_layers(model)[layer]
    call = owner.call
    object.__setattr__(owner, "call", lambda inputs, *a, **k: call(ops.reshape(inputs, (len(inputs), -1)), *a, **k))
