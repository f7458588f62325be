"""Keras 3, and, by its methods, in what Keras versions differ (Keras 2: `keras2.py`)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


class Keras3:
    """Keras 3, on any backend; what only Keras 2 knows does nothing here."""

    package = "keras"
    names: tuple[str, ...] = ("keras", "keras.api", "keras._tf_keras.keras")
    """The module's own name."""

    def is_of_tensorflow(self) -> bool:
        """Whether tf.keras is this one."""
        return of_tensorflow() == self.package

    @property
    def module(self) -> Any:
        """The package with the Keras 3 names that the check uses, including `ops` and `tree`."""
        return importlib.import_module("keras")

    def settings(self) -> dict[str, Any]:
        """Keras's process-wide counters and settings, by name; changing the dictionary changes Keras."""
        state = importlib.import_module("keras.src.backend.common.global_state")
        return state.GLOBAL_STATE_TRACKER.__dict__  # type: ignore[no-any-return]

    def seeds(self) -> Any:
        """The state of the seeds that Keras gives to operations, other than those of `seed_generators`."""
        return None

    def put_back_seeds(self, kept: Any) -> None:
        """Restore the state that `seeds` returned."""
        return

    def seed_operations(self, seed: int) -> None:
        """Restart these seeds."""
        return

    def seed_generators(self, layer: Any) -> Sequence[Any]:
        """A layer's random generators that count their draws in a variable."""
        return list(getattr(layer, "_seed_generators", []))

    def is_variable(self, value: Any) -> bool:
        """Whether the object is a variable, whose values training may change."""
        return isinstance(value, self.module.Variable)

    def wrapped(self, value: Any) -> Any:
        """The dictionary that a tracked dictionary wraps; None for other objects."""
        return None

    def is_wrapper(self, value: Any) -> bool:
        """Whether the object is a tracked list, whose members are in an attribute."""
        return False

    def raw(self, variable: Any) -> Any:
        """A variable as the backend's tensor, with respect to which gradients are computed."""
        return variable.value

    def cell(self, variable: Any) -> Any:
        """The backend's variable that stores a variable's values."""
        return variable._value

    def name_of(self, variable: Any) -> str:
        """A variable's name within its layer, such as kernel."""
        return str(variable.name)

    def set_trainable(self, layer: Any, variable: Any, trainable: bool) -> None:
        """Set whether training may change a layer's variable."""
        variable.trainable = trainable

    def resize(self, layer: Any, variable: Any, values: np.ndarray) -> None:
        """Give a layer's variable values of another shape, in place: existing references see the new values."""
        variable._initialize(self.module.ops.convert_to_tensor(values, dtype=variable.dtype))
        variable._shape = tuple(values.shape)

    def may_train_frozen(self, model: Any, layer: Any) -> bool:
        """Whether `fit` may change a layer that is frozen now, because it was not when the step was compiled."""
        return model.train_function is not None

    def takes_training(self, model: Any) -> bool:
        """Whether fit passes `training` to the model's call."""
        return bool(model._call_has_training_arg)

    def inputs_to_answer(self, model: Any, x: Any) -> Any:
        """The inputs, without those that only the model's own loss needs."""
        return x

    def compute_loss(self, model: Any, x: Any, y: Any, y_pred: Any, weight: Any, training: bool) -> Any:
        """The loss of an output, including the layers' additional losses."""
        return model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight, training=training)

    def has_library_step(self, model: Any) -> bool:
        """Whether a library (not the user, not Keras) gave the model a training step of its own."""
        return False

    def uses_library_loss(self, model: Any) -> bool:
        """Whether such a model trains on a loss that it computes itself from labels among its inputs."""
        return False

    def library_loss(self, model: Any, data: tuple[Any, Any, Any], training: bool) -> Any:
        """The loss from the library's training step, without the update."""
        return None

    def loss_weights(self, model: Any) -> list[float]:
        """The weight of each loss passed to compile, in the order of the calls; empty if unknown."""
        flat = getattr(getattr(model, "_compile_loss", None), "_flat_losses", None) or []
        return [1.0 if loss.loss_weights is None else float(loss.loss_weights) for loss in flat]

    def others(self, model: Any) -> list[Any]:
        """Variables other than the trained ones that a step may write to."""
        return [*model.non_trainable_variables, *model.metrics_variables]

    def is_built(self, optimizer: Any) -> bool:
        """Whether an optimizer has created its variables."""
        return bool(optimizer.built)

    def build_optimizer(self, optimizer: Any, variables: Sequence[Any]) -> None:
        """Make an optimizer recreate its own variables for these."""
        optimizer.built = False
        optimizer.build(variables)

    def held_by(self, optimizer: Any) -> set[Any]:
        """The keys (see `keys_of`) of the variables that an optimizer was built for."""
        return {id(v) for v in getattr(optimizer, "_trainable_variables", ())}

    def keys_of(self, optimizer: Any, variables: Sequence[Any]) -> set[Any]:
        """The keys by which an optimizer identifies variables."""
        return {id(v) for v in variables}

    def slots(self, optimizer: Any) -> list[Any]:
        """An optimizer's own variables."""
        return list(optimizer.variables)

    def rate(self, optimizer: Any) -> Any:
        """An optimizer's rate: a variable, or a schedule."""
        return optimizer._learning_rate

    def set_rate(self, optimizer: Any, rate: Any) -> None:
        """Set an optimizer's rate or schedule."""
        if isinstance(rate, self.module.optimizers.schedules.LearningRateSchedule):
            optimizer._learning_rate = rate
        else:
            optimizer.learning_rate = rate

    def asks_with(self, optimizer: Any) -> str:
        """The type of the update number that an optimizer passes to a schedule."""
        return str(optimizer.iterations.dtype)

    def rate_in(self, optimizer: Any) -> tuple[dict[str, Any], str]:
        """The dictionary in which an optimizer stores its rate, and the key."""
        return vars(optimizer), "_learning_rate"


def of_tensorflow() -> str:
    """The package behind tf.keras: keras, or tf_keras if TF_USE_LEGACY_KERAS was set before importing TensorFlow."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow.keras.Model.__module__.partition(".")[0] if tensorflow is not None else ""
