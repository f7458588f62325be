"""A Keras model's weights: their fingerprint, copies of them, and what training did to each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import Parameter
from trainwright.rehearsal.recorder import Recorder

# Values of a tensor in its fingerprint, and in the comparison of before and after.
FINGERPRINT, COMPARED = 64, 65_536
# Tensors that are followed, over all models.
MOST_PARAMETERS = 4000
# A prime by which sampled places are scattered: a stride can meet one dead column only.
_SCATTER = 7919


def values_of(variable: Any) -> NDArray[Any]:
    """A variable's values."""
    value = getattr(variable, "value", variable)
    value = value() if callable(value) else value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return np.asarray(value.float() if value.dtype.is_floating_point else value)
    return np.asarray(value)


def _sample(array: NDArray[Any], most: int) -> NDArray[Any]:
    flat = array.reshape(-1)
    return flat if flat.size <= most else flat[(np.arange(most, dtype=np.int64) * _SCATTER) % flat.size]


def weights_of(model: Any) -> list[Any]:
    """The model's weights, without its metrics and seeds; none of those that tf_keras refuses to give before they are built."""
    with contextlib.suppress(ValueError):
        return [v for v in model.weights if "seed_generator" not in str(getattr(v, "path", ""))]
    return []


def fingerprint(model: Any) -> float:
    """Equal weights have equal ones."""
    total = 0.0
    for i, variable in enumerate(weights_of(model)):
        array = values_of(variable)
        if array.dtype.kind not in "OUS":
            total += (i % 97 + 1) * float(_sample(array, FINGERPRINT).astype(np.float64).sum())
    return round(total, 6)


def parameters_of(model: Any) -> Iterator[Any]:
    """The variables that are made to be trained, whether or not they are frozen now."""
    seen: set[int] = set()
    flatten = getattr(model, "_flatten_layers", None)
    for layer in flatten() if flatten is not None else [model]:
        for variable in (
            getattr(layer, "_trainable_variables", None) or getattr(layer, "_trainable_weights", None) or ()
        ):
            if id(variable) not in seen:
                seen.add(id(variable))
                yield variable


def plain_optimizer(optimizer: Any) -> Any:
    """The optimizer inside a scaling of losses."""
    return getattr(optimizer, "inner_optimizer", None) or optimizer


def slots_of(optimizer: Any, variable: Any) -> list[Any]:
    """What the optimizer keeps for a variable: sums of its gradients, in most optimizers."""
    held = list(getattr(optimizer, "_trainable_variables", None) or ())
    place = next((i for i, v in enumerate(held) if v is variable), None)
    if place is None:
        return []
    lists = [
        v
        for n, v in vars(optimizer).items()
        if isinstance(v, (list, tuple)) and "trainable" not in n and "average" not in n
    ]
    found = [v[place] for v in lists if len(v) == len(held)]
    return [s for s in found if hasattr(s, "shape") and tuple(s.shape) == tuple(variable.shape) and s is not variable]


@dataclass
class _Followed:
    variable: Any
    parameter: Parameter
    before: NDArray[Any]


@dataclass
class FollowedWeights:
    """The parameters of all trained models, from the first to the last update of their optimizer."""

    recorder: Recorder
    _known: dict[tuple[int, int], _Followed] = field(default_factory=dict)
    trained: set[int] = field(default_factory=set)
    """The variables that updates change, or would at a rate above 0, by their identity."""

    def begin(self, model: Any, optimizer: Any, variables: list[Any] | None = None) -> None:
        """Keep the weights that a training begins with."""
        number = self.recorder.number_of(optimizer)
        for variable in variables if variables is not None else parameters_of(model):
            key = (number, id(variable))
            if key in self._known or len(self._known) >= MOST_PARAMETERS:
                continue
            array = values_of(variable)
            sample = np.array(_sample(array, COMPARED))
            parameter = Parameter(
                name=str(getattr(variable, "path", None) or variable.name).partition(":")[0],
                shape=tuple(int(s) for s in variable.shape),
                is_trainable=bool(variable.trainable),
                is_held=False,
                had_gradient=False,
                has_moved=False,
                steps=0,
                size_before=_size(sample),
                size_after=_size(sample),
                model=self.recorder.number_of(model) if model is not None else 0,
            )
            self._known[key] = _Followed(variable, parameter, sample)
            self.recorder.record.parameters.append(parameter)

    def end(self, model: Any, optimizer: Any, steps: int) -> None:
        """Compare with the weights after a training of so many updates."""
        number = self.recorder.number_of(optimizer)
        inner = plain_optimizer(optimizer)
        trainable = {id(v) for v in model.trainable_variables} if model is not None else None
        held = {id(v) for v in getattr(inner, "_trainable_variables", None) or ()} or trainable or set()
        for (which, key), followed in self._known.items():
            if which != number:
                continue
            parameter = followed.parameter
            after = _sample(values_of(followed.variable), COMPARED)
            parameter.is_trainable = bool(followed.variable.trainable) and (trainable is None or key in trainable)
            parameter.is_held = key in held and parameter.is_trainable
            parameter.has_moved = not np.array_equal(after, followed.before, equal_nan=after.dtype.kind == "f")
            parameter.size_after = _size(after)
            parameter.steps += steps
            parameter.had_gradient = self._had_gradient(inner, followed, parameter)
            if parameter.has_moved or parameter.had_gradient:
                self.trained.add(key)

    def _had_gradient(self, optimizer: Any, followed: _Followed, parameter: Parameter) -> bool:
        """By the sums that the optimizer keeps of a parameter's gradients; without them, by its movement."""
        slots = slots_of(optimizer, followed.variable)
        if not slots:
            return parameter.has_moved
        begins = (0.0, float(getattr(optimizer, "initial_accumulator_value", 0.0)))
        samples = [_sample(values_of(slot), COMPARED).astype(np.float64) for slot in slots]
        return any(not any(np.allclose(sample, begin, atol=0.0) for begin in begins) for sample in samples)


def _size(sample: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.square(sample.astype(np.float64))))) if sample.size else 0.0
