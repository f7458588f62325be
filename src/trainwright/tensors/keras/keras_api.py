"""What differs between Keras 3 and Keras 2, asked of the one that a model is of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class Version(Protocol):
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


def of_tensorflow() -> str:
    """The package that tf.keras is: keras, or tf_keras where TF_USE_LEGACY_KERAS was set before TensorFlow's import."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow.keras.Model.__module__.partition(".")[0] if tensorflow is not None else ""
