"""Keras's tensors, layers, optimizers and compiled losses on any of its backends (`core/tensors.py`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.core import PartMissing
from trainwright.core.tensors import shifts
from trainwright.stages.tensor import TensorFacts
from trainwright.tensors.keras.layers import activate as activate
from trainwright.tensors.keras.layers import flatten_before as flatten_before
from trainwright.tensors.keras.layers import freeze as freeze
from trainwright.tensors.keras.layers import is_stochastic as is_stochastic
from trainwright.tensors.keras.layers import layers_around as layers_around
from trainwright.tensors.keras.layers import layers_below as layers_below
from trainwright.tensors.keras.layers import mask_padding as mask_padding
from trainwright.tensors.keras.layers import named_layers as named_layers
from trainwright.tensors.keras.layers import named_variables as named_variables
from trainwright.tensors.keras.layers import register_lists as register_lists
from trainwright.tensors.keras.layers import reinitialise as reinitialise
from trainwright.tensors.keras.layers import resize_embeddings as resize_embeddings
from trainwright.tensors.keras.layers import resize_input as resize_input
from trainwright.tensors.keras.layers import scale_parameters as scale_parameters
from trainwright.tensors.keras.layers import set_dropout as set_dropout
from trainwright.tensors.keras.layers import stochastic_layers as stochastic_layers
from trainwright.tensors.keras.layers import unfreeze as unfreeze
from trainwright.tensors.keras.layers import value_of as value_of
from trainwright.tensors.keras.layers import widen_head as widen_head
from trainwright.tensors.keras.layers import zero_non_finite as zero_non_finite
from trainwright.tensors.keras.which_keras import keras, ops, schedule_changed, version

# Statistics of larger tensors use an evenly spaced sample of this many values; finiteness is checked for all.
LARGEST_EXACT = 4_000_000
# The part of a compiled model, and its attribute, that hold compile's argument of this name.
_HELD = {
    "loss": ("_compile_loss", "_user_loss"),
    "loss_weights": ("_compile_loss", "_user_loss_weights"),
    "metrics": ("_compile_metrics", "_user_metrics"),
    "weighted_metrics": ("_compile_metrics", "_user_weighted_metrics"),
}


def is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (keras.ops.is_tensor(value) and not _is_composite(value))


def _is_composite(value: Any) -> bool:
    """Whether a tensor is ragged or sparse, so its values do not form an array."""
    return type(value).__name__ in ("RaggedTensor", "SparseTensor", "BCOO", "IndexedSlices")


def facts(tensor: Any, *, requires_grad: bool = False) -> TensorFacts:
    """Summary statistics of a tensor.

    Args:
        requires_grad: it was computed from trained weights; Keras's tensors do not record this.
    """
    return array_facts(to_numpy(tensor), dtype=dtype_name(tensor), requires_grad=requires_grad)


def array_facts(seen: np.ndarray, *, dtype: str = "", requires_grad: bool = False) -> TensorFacts:
    """Summary statistics of an array."""
    base: dict[str, Any] = {
        "shape": tuple(int(n) for n in seen.shape),
        "dtype": dtype or str(seen.dtype),
        "requires_grad": requires_grad,
    }
    if not seen.size or seen.dtype.kind not in "iufb":
        return TensorFacts(**base)
    flat = seen.reshape(-1)
    non_finite = int((~np.isfinite(flat)).sum()) if flat.dtype.kind == "f" else 0
    if flat.size > LARGEST_EXACT:
        flat = flat[:: flat.size // LARGEST_EXACT + 1]
    values = flat.astype(np.float64)
    if non_finite:
        values = values[np.isfinite(values)]
    if not values.size:
        return TensorFacts(non_finite=non_finite, **base)
    return TensorFacts(
        minimum=float(values.min()),
        maximum=float(values.max()),
        mean=float(values.mean()),
        deviation=float(values.std()),
        non_finite=non_finite,
        zero_share=float((values == 0).mean()),
        **base,
    )


def dtype_name(tensor: Any) -> str:
    """int64, float32, bfloat16; `string` for text."""
    kind = tensor.dtype if hasattr(tensor, "dtype") else np.asarray(tensor).dtype
    return str(getattr(kind, "name", kind)).removeprefix("torch.")


def to_numpy(tensor: Any) -> np.ndarray:
    while hasattr(tensor, "primal"):  # a value that JAX is differentiating
        tensor = tensor.primal
    if hasattr(tensor, "numpy_function"):
        tensor = tensor.value
    array = np.asarray(tensor if isinstance(tensor, np.ndarray) else ops.convert_to_numpy(tensor))
    return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array


def has_values(tensor: Any) -> bool:
    """Whether its values are available, which they are not while JAX or TensorFlow is tracing."""
    while hasattr(tensor, "primal"):
        tensor = tensor.primal
    if (jax := sys.modules.get("jax")) is not None and isinstance(tensor, jax.core.Tracer):
        return False
    tf = sys.modules.get("tensorflow")
    return tf is None or not tf.is_symbolic_tensor(tensor)


def like(array: np.ndarray, reference: Any, dtype: str | None = None) -> Any:
    kind = dtype or dtype_name(reference)
    if isinstance(reference, np.ndarray):
        return np.asarray(array).astype(kind)
    return ops.convert_to_tensor(np.ascontiguousarray(array), dtype=kind)


def cast(tensor: Any, dtype: str) -> Any:
    return tensor.astype(dtype) if isinstance(tensor, np.ndarray) else ops.cast(tensor, dtype)


def reshape(tensor: Any, shape: Sequence[int]) -> Any:
    return tensor.reshape(tuple(shape)) if isinstance(tensor, np.ndarray) else ops.reshape(tensor, shape)


def renumbered(tensor: Any, numbers: Mapping[int, int]) -> Any:
    kind = dtype_name(tensor)
    given = found = tensor if "float" in kind else cast(tensor, "int32")  # unsigned ones take no -100
    for low, high, by in shifts(numbers):
        found = found + cast((given >= low) & (given <= high), dtype_name(given)) * by
    return cast(found, kind)


def log(tensor: Any) -> Any:
    return ops.log(ops.maximum(tensor, 1e-12))


def log_softmax(tensor: Any) -> Any:
    return ops.log_softmax(tensor, axis=1)


def logit(tensor: Any) -> Any:
    kept = ops.clip(tensor, 1e-6, 1 - 1e-6)
    return ops.log(kept) - ops.log(1 - kept)


def permute(tensor: Any, axes: Sequence[int]) -> Any:
    return tensor.transpose(axes) if isinstance(tensor, np.ndarray) else ops.transpose(tensor, axes)


def normalise_rows(tensor: Any) -> Any:
    return _normalised(tensor, (-1,))


def standardise(tensor: Any) -> Any:
    return _normalised(tensor, tuple(range(1, len(tensor.shape))))


def _normalised(tensor: Any, axes: tuple[int, ...]) -> Any:
    centred = tensor - ops.mean(tensor, axis=axes, keepdims=True)
    return centred / ops.sqrt(ops.mean(ops.square(centred), axis=axes, keepdims=True) + 1e-12)


def rate_of(optimizer: Any) -> float:
    """The rate of the next update."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    rate = version().rate(inner)
    if not is_schedule(rate):
        return number_of(rate() if callable(rate) else rate)
    count, dtype = inner.iterations, version().asks_with(inner)
    return number_of(rate(count if dtype_name(count) == dtype else ops.cast(count, dtype)))


def is_schedule(rate: Any) -> bool:
    """Whether an optimizer's rate is a schedule."""
    return isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)


def number_of(rate: Any) -> float:
    """A tensor with one value, or a number, as a number of Python's."""
    return float(to_numpy(ops.convert_to_tensor(rate)))


def set_learning_rate(optimizer: Any, *, factor: float | None = None, rate: float | None = None) -> None:
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    now = version().rate(optimizer)
    if isinstance(now, keras.optimizers.schedules.LearningRateSchedule):
        version().set_rate(optimizer, schedule_changed(now, factor, rate))
        return
    version().set_rate(
        optimizer, rate if rate is not None else float(to_numpy(now)) * (1.0 if factor is None else factor)
    )


def set_weight_decay(optimizer: Any, value: float) -> None:
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if getattr(optimizer, "weight_decay", None):
        optimizer.weight_decay = value


def clear_gradients(model: Any) -> None:
    """Clear the gradients that torch keeps between steps; the other backends keep none."""
    if keras.config.backend() == "torch":
        for variable in model.trainable_variables:
            variable.value.grad = None


def hold_parameters(optimizer: Any, model: Any) -> None:
    version().build_optimizer(optimizer, model.trainable_variables)


def clip_gradients(optimizer: Any, norm: float) -> None:
    optimizer.global_clipnorm = norm


def detached(value: Any) -> Any:
    return keras.tree.map_structure(ops.stop_gradient, value)


def take_rows(batch: Mapping[str, Any], rows: int) -> dict[str, Any]:
    first = next((v.shape[0] for v in batch.values() if is_tensor(v) and len(v.shape)), 0)
    return {k: v[:rows] if is_tensor(v) and len(v.shape) and v.shape[0] == first else v for k, v in batch.items()}


def padded(rows: Sequence[Any]) -> list[Any]:
    arrays = [np.asarray(r) for r in rows]
    longest = tuple(max(a.shape[i] for a in arrays) for i in range(arrays[0].ndim))
    return [np.pad(a, [(0, most - size) for most, size in zip(longest, a.shape)]) for a in arrays]


def predicted_classes(scores: Any, labels: Any) -> Any:
    seen, wanted = to_numpy(scores), to_numpy(labels)
    if seen.ndim < 2 or seen.shape[-1] < 2 or seen.shape[:-1] != wanted.shape:
        return None
    return like(seen.argmax(-1), labels, "int64")


def change_rows(data: Any, change: Callable[[dict[str, Any], int], Mapping[str, Any]]) -> Any:
    return data.changed(change)


def choose_rows(data: Any, rows: Sequence[int]) -> Any:
    return data.chosen(rows)


def choose_of_several(sets: Sequence[Any], rows: Sequence[tuple[int, int]]) -> Any:
    return sets[0].of_several(sets, rows)


def shuffled(dataset: Any) -> Any:
    return dataset.shuffled_rows()


def leaves(structure: Any) -> Iterator[Any]:
    """The leaves of a nested structure, without None."""
    for one in keras.tree.flatten(structure):
        if one is not None:
            yield one


def set_padding(model: Any, token: int) -> None:
    raise PartMissing("Keras models have no padding token")


def detach_kept(model: Any) -> None:
    raise PartMissing("Keras layers do not keep a step's graph")


def output_names(model: Any, answer: Any) -> tuple[str, ...]:
    """The keys of a dictionary of outputs, or else the names that losses use for them; empty if there are none."""
    if isinstance(answer, Mapping):
        return tuple(map(str, answer))
    return tuple(getattr(getattr(model, "_compile_loss", None), "output_names", None) or ())


def outputs_named(model: Any, targets: Any, outputs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The output names in each dictionary passed to compile, and in the targets (`labels`)."""
    given = {name: getattr(getattr(model, part, None), held, None) for name, (part, held) in _HELD.items()}
    if len(outputs) == 1:  # all metrics are its
        given = {"loss": given["loss"]}
    given["labels"] = targets
    return {n: tuple(map(str, v)) for n, v in given.items() if isinstance(v, Mapping) and outputs}


def rename_outputs(model: Any, role: str, names: Mapping[str, str]) -> None:
    """Rename keys in one of compile's dictionaries; for the targets (`labels`), rename the outputs to match.

    Args:
        names: the new key for each present key.
    """
    parts = [p for p in (getattr(model, name, None) for name in ("_compile_loss", "_compile_metrics")) if p is not None]
    renamed: tuple[str, ...] = (role,)
    if role == "labels":  # the data stay as they are: losses and metrics look for their names
        renamed, names = tuple(_HELD), {new: old for old, new in names.items()}
        for part in parts:
            part.output_names = [names.get(n, n) for n in part.output_names or ()]
    for name in renamed:
        part = getattr(model, _HELD[name][0], None)
        given = getattr(part, _HELD[name][1], None)
        if isinstance(given, Mapping):
            setattr(part, _HELD[name][1], {names.get(k, k): v for k, v in given.items()})
    for part in parts:
        part.built = False


def losses_of(model: Any) -> list[Any]:
    """The losses passed to compile, in the form in which Keras calls them; empty if that is not known yet."""
    return [one.loss for one in getattr(getattr(model, "_compile_loss", None), "_flat_losses", None) or ()]


def give_no_loss(model: Any, names: Sequence[str]) -> None:
    """Add these outputs to a dictionary of losses, with None as their loss."""
    part = model._compile_loss
    part._user_loss, part.built = {**part._user_loss, **dict.fromkeys(names)}, False
