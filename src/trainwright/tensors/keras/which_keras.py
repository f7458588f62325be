"""Which Keras is checked: Keras 3 (here), or Keras 2 (the package tf_keras; `keras2.py`)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.tensors.keras.keras_api import Version


class _Keras3(Version):
    """Keras 3, on any backend."""

    package = "keras"
    names: tuple[str, ...] = ("keras", "keras.api", "keras._tf_keras.keras")
    takes_lists = False

    @property
    def module(self) -> Any:
        return importlib.import_module("keras")

    def settings(self) -> dict[str, Any]:
        state = importlib.import_module("keras.src.backend.common.global_state")
        return state.GLOBAL_STATE_TRACKER.__dict__  # type: ignore[no-any-return]

    def seed_generators(self, layer: Any) -> Sequence[Any]:
        return list(getattr(layer, "_seed_generators", []))

    def is_variable(self, value: Any) -> bool:
        return isinstance(value, self.module.Variable)

    def raw(self, variable: Any) -> Any:
        return variable.value

    def cell(self, variable: Any) -> Any:
        return variable._value

    def name_of(self, variable: Any) -> str:
        return str(variable.name)

    def set_trainable(self, layer: Any, variable: Any, trainable: bool) -> None:
        variable.trainable = trainable

    def resize(self, layer: Any, variable: Any, values: np.ndarray) -> None:
        variable._initialize(self.module.ops.convert_to_tensor(values, dtype=variable.dtype))
        variable._shape = tuple(values.shape)

    def is_compiled(self, model: Any) -> bool:
        return bool(model.compiled)

    def may_train_frozen(self, model: Any, layer: Any) -> bool:
        return model.train_function is not None

    def takes_training(self, model: Any) -> bool:
        return bool(model._call_has_training_arg)

    def compute_loss(self, model: Any, x: Any, y: Any, y_pred: Any, weight: Any, training: bool) -> Any:
        return model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight, training=training)

    def loss_weights(self, model: Any) -> list[float]:
        flat = getattr(getattr(model, "_compile_loss", None), "_flat_losses", None) or []
        return [1.0 if loss.loss_weights is None else float(loss.loss_weights) for loss in flat]

    def others(self, model: Any) -> list[Any]:
        return [*model.non_trainable_variables, *model.metrics_variables]

    def is_built(self, optimizer: Any) -> bool:
        return bool(optimizer.built)

    def build_optimizer(self, optimizer: Any, variables: Sequence[Any]) -> None:
        optimizer.built = False
        optimizer.build(variables)

    def keys_of(self, optimizer: Any, variables: Sequence[Any]) -> set[Any]:
        return {id(v) for v in variables}

    def held_by(self, optimizer: Any) -> set[Any]:
        return {id(v) for v in getattr(optimizer, "_trainable_variables", ())}

    def slots(self, optimizer: Any) -> list[Any]:
        return list(optimizer.variables)

    def rate(self, optimizer: Any) -> Any:
        return optimizer._learning_rate

    def set_rate(self, optimizer: Any, rate: Any) -> None:
        if isinstance(rate, self.module.optimizers.schedules.LearningRateSchedule):
            optimizer._learning_rate = rate
        else:
            optimizer.learning_rate = rate

    def asks_with(self, optimizer: Any) -> str:
        return str(optimizer.iterations.dtype)

    def rate_in(self, optimizer: Any) -> tuple[dict[str, Any], str]:
        return vars(optimizer), "_learning_rate"


_now: Version = _Keras3()


def version() -> Version:
    """The Keras that is checked."""
    return _now


def walk_version_of(model: Any) -> None:
    """Switch to the Keras version of this model."""
    global _now
    if package_of(model) == "tf_keras":
        from trainwright.tensors.keras.keras2 import Keras2

        _now = Keras2()
    else:
        _now = _Keras3()


def package_of(value: Any) -> str:
    """The package of a Keras object or of a class derived from one: keras, tf_keras; empty for others."""
    packages = (k.__module__.partition(".")[0] for k in type(value).__mro__)
    return next((p for p in packages if p in ("keras", "tf_keras")), "")


class _Walked:
    """The checked Keras, under Keras 3 names."""

    def __init__(self, *inner: str) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = _now.module
        for step in (*self._inner, name):
            found = getattr(found, step)
        return found


keras: Any = _Walked()
ops: Any = _Walked("ops")


def schedule_changed(schedule: Any, factor: float | None, rate: float | None) -> Any:
    """A schedule with a scaled rate or another rate."""
    base: Any = keras.optimizers.schedules.LearningRateSchedule

    class Changed(base):
        def __call__(self, step: Any) -> Any:
            if rate is not None:
                return rate
            return schedule(step) * (1.0 if factor is None else factor)

        def get_config(self) -> Mapping[str, Any]:
            return {}

    return Changed()
