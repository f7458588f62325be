"""What a Keras model takes: the names of its inputs, their kinds, and what its first layers do with them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.adapters.keras.calls import is_own
from trainwright.adapters.keras.input.nested_values import named

# Layers that look integers up, and take them in floating-point numbers too.
_LOOKS_UP = ("Embedding", "StringLookup", "IntegerLookup", "Hashing", "CategoryEncoding", "Discretization", "TextVectorization", "ReversibleEmbedding", "TokenAndPositionEmbedding")  # fmt: skip
# Layers that read text, or that do what their user says.
_READS_TEXT = ("TextVectorization", "StringLookup", "Hashing", "Lambda", "HashedCrossing", "FeatureSpace")
# Methods in which the user's own code may do without targets.
_OWN_LOSS = ("train_step", "compute_loss", "compute_loss_and_updates", "_compute_loss")


@dataclass(frozen=True, kw_only=True)
class ModelInputs:
    """What a model takes as its inputs, as far as it says so before it is called."""

    names: tuple[str, ...] = ()
    """Keys of a dictionary of inputs; empty where it takes any, or takes no dictionary."""
    takes_any: bool = True
    required: tuple[str, ...] = ()
    floats: Mapping[str, bool] | None = None
    """Whether each of a dictionary's inputs is made floating-point numbers of."""
    float_order: tuple[bool, ...] = ()
    """The same by position."""
    channels_last: bool | None = None
    """Where the first convolution of images takes the channels; None: there is none."""
    channels: int | None = None
    """How many it has weights for; None: not made yet, or there is none."""
    embedding: str = ""
    """The name of the first layer, where it looks tokens up."""
    embedding_rows: int | None = None
    first_layer: str = ""
    """The kind of the layer of Keras's own that takes the only input, where it takes numbers alone; empty: not known."""
    masks_zero: bool = False
    """The embedding tells the layers behind it to leave token 0 out."""

    def is_float(self, name: str, position: int, count: int) -> bool:
        """Whether an input, known by name or by its place among so many, is made floating-point numbers of."""
        if self.floats and name in self.floats:
            return self.floats[name]
        return position < len(self.float_order) == count and self.float_order[position]


def inputs_of(model: Any) -> ModelInputs:
    """What a model takes."""
    found: dict[str, Any] = _convolution(model)
    struct = getattr(model, "_inputs_struct", None)
    if struct is None and (first := _first_layer(model)) is not None:
        float_first = first not in _LOOKS_UP and not _is_wrapper(first)
        return ModelInputs(float_order=(float_first,), **found, **_first_taker(model, None))
    if struct is None:
        return ModelInputs(**_called_with(model), **found, **_first_taker(model, None))
    pairs = list(named(struct, "x"))
    kinds = [_is_float(model, tensor) for _, tensor in pairs]
    keys = (
        tuple(n for n, _ in pairs) if isinstance(struct, Mapping) else tuple(t.name for _, t in pairs if len(pairs) > 1)
    )
    return ModelInputs(
        names=keys,
        takes_any=False,
        required=keys,
        floats=dict(zip(keys, kinds)),
        float_order=tuple(kinds),
        **found,
        **_first_taker(model, pairs[0][1] if len(pairs) == 1 else None),
    )


def _called_with(model: Any) -> dict[str, Any]:
    """The arguments of a subclassed model's call, where it names several inputs."""
    try:
        parameters = inspect.signature(model.call).parameters.values()
    except (TypeError, ValueError):
        return {}
    own = [p for p in parameters if p.name not in ("self", "training", "mask", "inputs")]
    if len(own) < 3:  # one input, whatever it is called
        return {}
    return {"names": tuple(p.name for p in own if p.kind is not p.VAR_KEYWORD)}


def _is_float(model: Any, tensor: Any) -> bool:
    """Whether a functional model's input is of floating-point numbers, and no layer looks it up."""
    if "float" not in str(tensor.dtype):
        return False
    return not any(type(layer).__name__ in _LOOKS_UP for layer in _takers(model, tensor))


def _takers(model: Any, tensor: Any) -> Iterator[Any]:
    """The layers that a functional model gives one of its inputs to, those of models within it too."""
    for layer in getattr(model, "layers", ()):
        for node in getattr(layer, "_inbound_nodes", ()):
            if any(t is tensor for t in getattr(node, "input_tensors", ())):
                yield layer


def _first_layer(model: Any) -> str | None:
    """The kind of the first layer of a Sequential that was not built yet."""
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
            kernel = getattr(layer, "kernel", None) if layer.built else None
            return {"channels_last": last, "channels": int(kernel.shape[2]) if kernel is not None else None}
    return {}


def _first_taker(model: Any, tensor: Any) -> dict[str, Any]:
    """The layer that a model's only input goes into first, and what it is where it is an embedding."""
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
    """The loss that a model was compiled with, which compares with targets; empty where the user's code may not."""
    loss = getattr(model, "loss", None)
    if loss is None or any(is_own(model, name) for name in _OWN_LOSS) or getattr(model, "_using_dummy_loss", False):
        return ""
    return ", ".join(dict.fromkeys(_name(part) for _, part in named(loss, "loss")))


def _name(loss: Any) -> str:
    """A loss as it is called: by its string, its own name, or that of its function."""
    own = getattr(loss, "name", None) or getattr(loss, "__name__", None)
    return loss if isinstance(loss, str) else str(own or type(loss).__name__)
