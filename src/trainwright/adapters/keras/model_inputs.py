"""A Keras model's inputs: their names, their types, and what its first layers do with them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.adapters.keras.calls import is_own
from trainwright.adapters.keras.input.nested_values import name_arrays

# Layers that look up integers, and accept them as floating-point numbers too.
_LOOKS_UP = ("Embedding", "StringLookup", "IntegerLookup", "Hashing", "CategoryEncoding", "Discretization", "TextVectorization", "ReversibleEmbedding", "TokenAndPositionEmbedding")  # fmt: skip
# Layers that read text, or run user code.
_READS_TEXT = ("TextVectorization", "StringLookup", "Hashing", "Lambda", "HashedCrossing", "FeatureSpace")
# Methods in which the user's code may work without targets.
_OWN_LOSS = ("train_step", "compute_loss", "compute_loss_and_updates", "_compute_loss")


@dataclass(frozen=True, kw_only=True)
class ModelInputs:
    """A model's inputs, as far as they are known before it is called."""

    names: tuple[str, ...] = ()
    """Keys of a dictionary of inputs; empty if it takes any, or takes no dictionary."""
    takes_any: bool = True
    floats: Mapping[str, bool] | None = None
    """Whether each input of the dictionary is cast to floating point."""
    float_order: tuple[bool, ...] = ()
    """The same by position."""
    channels_last: bool | None = None
    """The channel axis that the first image convolution expects; None: there is none."""
    embedding: str = ""
    """The name of the first layer, if it looks up tokens."""
    embedding_rows: int | None = None
    first_layer: str = ""
    """The type of the Keras layer that takes the only input, if it accepts only numbers; empty: unknown."""
    masks_zero: bool = False
    """The embedding masks token 0 for later layers."""

    def is_float(self, name: str, position: int, count: int) -> bool:
        """Whether an input, given by name or position among `count`, is cast to floating point."""
        if self.floats and name in self.floats:
            return self.floats[name]
        return position < len(self.float_order) == count and self.float_order[position]


def inputs_of(model: Any) -> ModelInputs:
    """Find a model's inputs."""
    found: dict[str, Any] = _convolution(model)
    struct = getattr(model, "_inputs_struct", None)
    if struct is None and (first := _first_layer(model)) is not None:
        float_first = first not in _LOOKS_UP and not _is_wrapper(first)
        return ModelInputs(float_order=(float_first,), **found, **_first_taker(model, None))
    if struct is None:
        return ModelInputs(**_called_with(model), **found, **_first_taker(model, None))
    pairs = list(name_arrays(struct, "x"))
    kinds = [_is_float(model, tensor) for _, tensor in pairs]
    keys = (
        tuple(n for n, _ in pairs) if isinstance(struct, Mapping) else tuple(t.name for _, t in pairs if len(pairs) > 1)
    )
    return ModelInputs(
        names=keys,
        takes_any=False,
        floats=dict(zip(keys, kinds)),
        float_order=tuple(kinds),
        **found,
        **_first_taker(model, pairs[0][1] if len(pairs) == 1 else None),
    )


def _called_with(model: Any) -> dict[str, Any]:
    """The arguments of a subclassed model's call, if it names several inputs."""
    try:
        parameters = inspect.signature(model.call).parameters.values()
    except (TypeError, ValueError):
        return {}
    own = [p for p in parameters if p.name not in ("self", "training", "mask", "inputs")]
    if len(own) < 3:  # one input, whatever its name
        return {}
    return {"names": tuple(p.name for p in own if p.kind is not p.VAR_KEYWORD)}


def _is_float(model: Any, tensor: Any) -> bool:
    """Whether a functional model's input is floating point and no layer looks it up."""
    if "float" not in str(tensor.dtype):
        return False
    return not any(type(layer).__name__ in _LOOKS_UP for layer in _takers(model, tensor))


def _takers(model: Any, tensor: Any) -> Iterator[Any]:
    """The layers that take one of a functional model's inputs, including those of nested models."""
    for layer in getattr(model, "layers", ()):
        for node in getattr(layer, "_inbound_nodes", ()):
            if any(t is tensor for t in getattr(node, "input_tensors", ())):
                yield layer


def _first_layer(model: Any) -> str | None:
    """The type of the first layer of a Sequential that is not built yet."""
    if "Sequential" not in {k.__name__ for k in type(model).__mro__}:
        return None
    layers = list(model.layers)
    return type(layers[0]).__name__ if layers else None


def _is_wrapper(kind: str) -> bool:
    return kind in ("Lambda", "Sequential", "Functional", "Model")


def _layers(model: Any) -> Iterator[Any]:
    flatten = getattr(model, "_flatten_layers", None)
    yield from flatten(include_self=False, recursive=True) if flatten else getattr(model, "layers", ())


def _convolution(model: Any) -> dict[str, Any]:
    for layer in _layers(model):
        name = type(layer).__name__
        if "Conv2D" in name and "Transpose" not in name and hasattr(layer, "data_format"):
            last = layer.data_format == "channels_last"
            return {"channels_last": last}
    return {}


def _first_taker(model: Any, tensor: Any) -> dict[str, Any]:
    """The layer that takes a model's only input, and its properties if it is an embedding."""
    if tensor is not None:
        first = next((la for la in _takers(model, tensor)), None)
    else:
        first = next(iter(model.layers), None) if _first_layer(model) else None
    if first is None:
        return {}
    kind = type(first).__name__
    numbers = type(first).__module__.startswith(("keras.", "tf_keras.")) and kind not in _READS_TEXT
    if kind != "Embedding":
        return {"first_layer": kind} if numbers and not _is_wrapper(kind) else {}
    return {
        "first_layer": kind,
        "embedding": first.name,
        "embedding_rows": int(first.input_dim),
        "masks_zero": bool(first.mask_zero),
    }


def losing_at_targets(model: Any) -> str:
    """The loss a model was compiled with, if it needs targets; empty if the user's code may not use it."""
    loss = getattr(model, "loss", None)
    if loss is None or any(is_own(model, name) for name in _OWN_LOSS) or getattr(model, "_using_dummy_loss", False):
        return ""
    return ", ".join(dict.fromkeys(_name(part) for _, part in name_arrays(loss, "loss")))


def _name(loss: Any) -> str:
    """A loss's name: its string, its own name, or that of its function."""
    own = getattr(loss, "name", None) or getattr(loss, "__name__", None)
    return loss if isinstance(loss, str) else str(own or type(loss).__name__)
