"""Keras 2 (the package tf_keras), under the Keras 3 names that the check uses."""

from __future__ import annotations

import functools
import importlib
import random
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from trainwright.tensors.keras.keras3 import Keras3

# Models of this library use the library's own training step, which finds labels among the inputs.
_LIBRARY = "transformers"


class Keras2(Keras3):
    """tf_keras."""

    package = "tf_keras"
    names: tuple[str, ...] = ("tf_keras", "tf_keras.api._v2.keras")

    def __init__(self) -> None:
        self._module = _Keras3Names(importlib.import_module("tf_keras"))

    @property
    def module(self) -> Any:
        return self._module

    def settings(self) -> dict[str, Any]:
        return {}

    def seeds(self) -> Any:
        generator = _generators().__dict__.get("generator")
        return None if generator is None else (generator, generator.getstate())

    def put_back_seeds(self, kept: Any) -> None:
        if kept is None:
            _generators().__dict__.pop("generator", None)
            return
        generator, state = kept
        generator.setstate(state)
        _generators().generator = generator

    def seed_operations(self, seed: int) -> None:
        _generators().generator = random.Random(seed)

    def is_variable(self, value: Any) -> bool:
        return isinstance(value, sys.modules["tensorflow"].Variable)

    def wrapped(self, value: Any) -> Any:
        return value.__wrapped__ if type(value).__name__ == "_DictWrapper" else None

    def is_wrapper(self, value: Any) -> bool:
        return type(value).__name__ == "ListWrapper"

    def raw(self, variable: Any) -> Any:
        return variable

    def cell(self, variable: Any) -> Any:
        return variable

    def name_of(self, variable: Any) -> str:
        return str(variable.name).rpartition("/")[2].partition(":")[0]

    def set_trainable(self, layer: Any, variable: Any, trainable: bool) -> None:
        trained, others = layer._trainable_weights, layer._non_trainable_weights
        source, target = (others, trained) if trainable else (trained, others)
        if any(v is variable for v in source):
            source[:] = [v for v in source if v is not variable]
            target.append(variable)

    def resize(self, layer: Any, variable: Any, values: np.ndarray) -> None:
        other = sys.modules["tensorflow"].Variable(values, dtype=variable.dtype, name=self.name_of(variable))
        for name, value in layer.__dict__.items():
            if value is variable:
                layer.__dict__[name] = other
        for held in (layer._trainable_weights, layer._non_trainable_weights):
            held[:] = [other if v is variable else v for v in held]

    def may_train_frozen(self, model: Any, layer: Any) -> bool:
        return bool(model._compiled_trainable_state.get(layer, False))

    def takes_training(self, model: Any) -> bool:
        return True  # a call that has no such argument hands it on all the same

    def inputs_to_answer(self, model: Any, x: Any) -> Any:
        if not self.has_library_step(model) or not isinstance(x, dict):
            return x
        labels = importlib.import_module("transformers.utils").find_labels(type(model))
        return {k: v for k, v in x.items() if k not in labels}

    def compute_loss(self, model: Any, x: Any, y: Any, y_pred: Any, weight: Any, training: bool) -> Any:
        loss = model.compute_loss(x, y, y_pred, weight)
        model._validate_target_and_loss(y, loss)
        return loss

    def has_library_step(self, model: Any) -> bool:
        owner = next(k for k in type(model).__mro__ if "train_step" in k.__dict__)
        return owner.__module__.partition(".")[0] == _LIBRARY

    def uses_library_loss(self, model: Any) -> bool:
        return bool(getattr(model, "_using_dummy_loss", False))

    def library_loss(self, model: Any, data: tuple[Any, Any, Any], training: bool) -> Any:
        container, optimizer = model.compiled_loss, model.optimizer
        heard = model.__dict__["compiled_loss"] = _Heard(container)
        if optimizer is not None:
            optimizer.__dict__["minimize"] = lambda *args, **kwargs: None
        try:
            model.train_step(data) if training else model.test_step(data)
        finally:
            model.__dict__["compiled_loss"] = container
            if optimizer is not None:
                del optimizer.__dict__["minimize"]
        return heard.loss

    def others(self, model: Any) -> list[Any]:
        return []

    def is_built(self, optimizer: Any) -> bool:
        return bool(getattr(optimizer, "_built", False) or getattr(optimizer, "_hypers_created", False))

    def build_optimizer(self, optimizer: Any, variables: Sequence[Any]) -> None:
        if not hasattr(optimizer, "build"):  # one of tf_keras.optimizers.legacy
            optimizer._create_all_weights(variables)
            optimizer.__dict__["_held_for"] = list(variables)
            return
        optimizer._built = False
        optimizer.build(variables)

    def keys_of(self, optimizer: Any, variables: Sequence[Any]) -> set[Any]:
        return {optimizer._var_key(v) if hasattr(optimizer, "build") else id(v) for v in variables}

    def held_by(self, optimizer: Any) -> set[Any]:
        if hasattr(optimizer, "build"):
            return set(getattr(optimizer, "_index_dict", ()))
        return {id(v) for v in optimizer.__dict__.get("_held_for", ())}

    def slots(self, optimizer: Any) -> list[Any]:
        held = optimizer.variables
        return list(held() if callable(held) else held)

    def rate(self, optimizer: Any) -> Any:
        hyper = getattr(optimizer, "_get_hyper", None)
        return hyper("learning_rate") if hyper is not None else optimizer._learning_rate

    def set_rate(self, optimizer: Any, rate: Any) -> None:
        if isinstance(rate, self.module.optimizers.schedules.LearningRateSchedule) and not hasattr(
            optimizer, "_get_hyper"
        ):
            optimizer._learning_rate = rate
        else:
            optimizer.learning_rate = rate

    def asks_with(self, optimizer: Any) -> str:
        # tf_keras.optimizers.legacy converts it to a floating-point number.
        return "float32" if hasattr(optimizer, "_get_hyper") else str(optimizer.iterations.dtype.name)

    def rate_in(self, optimizer: Any) -> tuple[dict[str, Any], str]:
        hypers = vars(optimizer).get("_hyper")
        return (vars(optimizer), "_learning_rate") if hypers is None else (hypers, "learning_rate")


class _Heard:
    """Computes a model's loss and keeps it."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self.loss: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.loss = self._container(*args, **kwargs)
        return self.loss

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)


class _Keras3Names:
    """tf_keras with the names introduced by Keras 3."""

    def __init__(self, module: Any) -> None:
        self._module = module
        tf = sys.modules["tensorflow"]
        self.ops = _operations(tf)
        self.tree = SimpleNamespace(
            map_structure=tf.nest.map_structure,
            flatten=tf.nest.flatten,
            lists_to_tuples=tf.__internal__.nest.list_to_tuple,
        )
        self.config = SimpleNamespace(backend=lambda: "tensorflow", floatx=module.backend.floatx)
        self.Variable = tf.Variable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _operations(tf: Any) -> Any:
    return SimpleNamespace(
        is_tensor=tf.is_tensor,
        convert_to_numpy=functools.partial(_to_numpy, tf),
        convert_to_tensor=tf.convert_to_tensor,
        cast=tf.cast,
        reshape=tf.reshape,
        log=tf.math.log,
        maximum=tf.maximum,
        softmax=tf.nn.softmax,
        sigmoid=tf.math.sigmoid,
        log_softmax=tf.nn.log_softmax,
        clip=tf.clip_by_value,
        transpose=tf.transpose,
        mean=tf.reduce_mean,
        sqrt=tf.sqrt,
        square=tf.square,
        stop_gradient=tf.stop_gradient,
        zeros=tf.zeros,
    )


def _to_numpy(tf: Any, value: Any) -> np.ndarray:
    """A tensor's values; an Embedding's gradient, which covers only some rows, becomes a table of all rows."""
    value = tf.convert_to_tensor(value) if isinstance(value, tf.IndexedSlices) else value
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _generators() -> Any:
    return importlib.import_module("tf_keras.src.backend")._SEED_GENERATOR
