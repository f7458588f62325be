"""Which Keras a model is of: Keras 3, or Keras 2 as the package tf_keras; what differs between them is here alone."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np


class Own(Protocol):
    """One of the two Keras, as far as they differ."""

    package: str
    names: tuple[str, ...]
    """What the module calls itself."""
    takes_lists: bool
    """Whether fit takes lists of numbers for arrays."""

    def is_of_tensorflow(self) -> bool:
        """Whether tf.keras is this one."""

    @property
    def module(self) -> Any:
        """The package with the names of Keras 3 that the walk uses; `ops` and `tree` as well."""

    def settings(self) -> dict[str, Any]:
        """What Keras counts and sets for a whole process, by name; a change of it is a change there."""

    def seeds(self) -> Any:
        """Where Keras is with the seeds that it gives to operations, beside those of `seed_generators`."""

    def put_back_seeds(self, kept: Any) -> None:
        """As `seeds` found it."""

    def seed_operations(self, seed: int) -> None:
        """Let these seeds begin anew."""

    def seed_generators(self, layer: Any) -> Sequence[Any]:
        """The generators of a layer that count their draws in a variable."""

    def is_variable(self, value: Any) -> bool:
        """Whether it holds values that training may change."""

    def wrapped(self, value: Any) -> Any:
        """The dictionary that a tracked dictionary stands for; None for other things."""

    def is_wrapper(self, value: Any) -> bool:
        """Whether it is a tracked list, whose members lie in an attribute."""

    def raw(self, variable: Any) -> Any:
        """A variable as the backend's tensor, by which gradients are taken."""

    def cell(self, variable: Any) -> Any:
        """What a variable's values lie in: the backend's variable."""

    def name_of(self, variable: Any) -> str:
        """A variable's name within its layer: kernel."""

    def set_trainable(self, layer: Any, variable: Any, trainable: bool) -> None:
        """Let training change a layer's variable, or not."""

    def resize(self, layer: Any, variable: Any, values: np.ndarray) -> None:
        """Give a layer's variable values of another shape; who holds the variable holds the new ones."""

    def is_compiled(self, model: Any) -> bool:
        """Whether `compile` was called."""

    def may_train_frozen(self, model: Any, layer: Any) -> bool:
        """Whether `fit` may change a layer although it is frozen now: it was not when the step was made."""

    def takes_training(self, model: Any) -> bool:
        """Whether fit tells the model's call if it is one of training."""

    def inputs_to_answer(self, model: Any, x: Any) -> Any:
        """The inputs without what only the model's own loss needs."""

    def compute_loss(self, model: Any, x: Any, y: Any, y_pred: Any, weight: Any, training: bool) -> Any:
        """The loss of an answer, further losses of the layers included."""

    def has_library_step(self, model: Any) -> bool:
        """Whether a library (not the user, not Keras) gave the model a training step of its own."""

    def uses_library_loss(self, model: Any) -> bool:
        """Whether such a model is trained on the loss that it computes itself, from labels among its inputs."""

    def library_loss(self, model: Any, data: tuple[Any, Any, Any], training: bool) -> Any:
        """The loss by that step, whose update is left out."""

    def loss_weights(self, model: Any) -> list[float]:
        """The factor of each of the losses given to compile, in the order in which they are called; empty: unknown."""

    def others(self, model: Any) -> list[Any]:
        """Variables that a step may write to beside the trained ones."""

    def is_built(self, optimizer: Any) -> bool:
        """Whether an optimizer has made its variables."""

    def build_optimizer(self, optimizer: Any, variables: Sequence[Any]) -> None:
        """Let an optimizer make its variables anew, for these."""

    def held_by(self, optimizer: Any) -> set[Any]:
        """The variables that an optimizer was built for, as `keys_of` calls them."""

    def keys_of(self, optimizer: Any, variables: Sequence[Any]) -> set[Any]:
        """Variables as an optimizer knows them."""

    def slots(self, optimizer: Any) -> list[Any]:
        """An optimizer's own variables."""

    def rate(self, optimizer: Any) -> Any:
        """An optimizer's rate: a variable, or a schedule."""

    def set_rate(self, optimizer: Any, rate: Any) -> None:
        """Give an optimizer a rate, or a schedule."""

    def asks_with(self, optimizer: Any) -> str:
        """The type of the number of updates with which an optimizer asks a schedule for its rate."""

    def rate_in(self, optimizer: Any) -> tuple[dict[str, Any], str]:
        """The dictionary in which an optimizer holds its rate, and the key there."""


class Keras3:
    """Keras 3, on any backend."""

    package = "keras"
    names: tuple[str, ...] = ("keras", "keras.api", "keras._tf_keras.keras")
    takes_lists = False

    def is_of_tensorflow(self) -> bool:
        return of_tensorflow() == self.package

    @property
    def module(self) -> Any:
        return importlib.import_module("keras")

    def settings(self) -> dict[str, Any]:
        state = importlib.import_module("keras.src.backend.common.global_state")
        return state.GLOBAL_STATE_TRACKER.__dict__  # type: ignore[no-any-return]

    def seeds(self) -> Any:
        return None

    def put_back_seeds(self, kept: Any) -> None:
        """Keras 3 has no such seeds."""

    def seed_operations(self, seed: int) -> None:
        """Keras 3 has no such seeds."""

    def seed_generators(self, layer: Any) -> Sequence[Any]:
        return list(getattr(layer, "_seed_generators", []))

    def is_variable(self, value: Any) -> bool:
        return isinstance(value, self.module.Variable)

    def wrapped(self, value: Any) -> Any:
        return None

    def is_wrapper(self, value: Any) -> bool:
        return False

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

    def inputs_to_answer(self, model: Any, x: Any) -> Any:
        return x

    def compute_loss(self, model: Any, x: Any, y: Any, y_pred: Any, weight: Any, training: bool) -> Any:
        return model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight, training=training)

    def has_library_step(self, model: Any) -> bool:
        return False

    def uses_library_loss(self, model: Any) -> bool:
        return False

    def library_loss(self, model: Any, data: tuple[Any, Any, Any], training: bool) -> Any:
        raise NotImplementedError("a model of Keras 3 takes its step as Keras does, or as its user says")

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


_now: Own = Keras3()


def of_tensorflow() -> str:
    """The package that tf.keras is: keras, or tf_keras where TF_USE_LEGACY_KERAS was set before TensorFlow's import."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow.keras.Model.__module__.partition(".")[0] if tensorflow is not None else ""


def own() -> Own:
    """The Keras that is walked."""
    return _now


def walk_own_of(model: Any) -> None:
    """From here on what is walked is of the Keras that this model is of."""
    global _now
    if own_package(model) == "tf_keras":
        from trainwright.tensors.keras_legacy import Legacy

        _now = Legacy()
    else:
        _now = Keras3()


def own_package(value: Any) -> str:
    """The package of an object of Keras's, or of a class derived from one: keras, tf_keras; empty for others."""
    packages = (k.__module__.partition(".")[0] for k in type(value).__mro__)
    return next((p for p in packages if p in ("keras", "tf_keras")), "")


class _Walked:
    """The Keras that is walked, under the names of Keras 3."""

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
    """A schedule with its rate scaled, or another rate."""
    base: Any = keras.optimizers.schedules.LearningRateSchedule

    class Changed(base):
        def __call__(self, step: Any) -> Any:
            if rate is not None:
                return rate
            return schedule(step) * (1.0 if factor is None else factor)

        def get_config(self) -> Mapping[str, Any]:
            return {}

    return Changed()
