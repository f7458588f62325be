"""A Keras model's real `fit`, ended after a short time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from trainwright.seams.listening.seen import seen
from trainwright.tensors.keras.which_keras import keras, walk_version_of
from trainwright.timing import now


def fit_shortly(
    model: Any, given: Mapping[str, Any], original: Callable[[Mapping[str, Any]], Any], seconds: float
) -> tuple[Any, bool]:
    """What `fit` returns, and whether it was ended early.

    Args:
        given: the arguments of `fit`.
    """
    walk_version_of(model)
    ending = _ending(seconds)
    callbacks: Any = given.get("callbacks")
    if hasattr(callbacks, "append") and not isinstance(callbacks, list):  # Keras's own list of callbacks
        callbacks.append(ending)
    elif isinstance(callbacks, (list, tuple)):
        callbacks = [*callbacks, ending]
    else:
        callbacks = [ending] if callbacks is None else [callbacks, ending]
    result = original({**given, "callbacks": callbacks})
    for variable in model.trainable_variables:
        seen().trained_earlier[variable] = True
    return result, ending.has_ended


def _ending(seconds: float) -> Any:
    """A callback that ends the training and its validations once its time is over."""

    class Ending(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.has_ended = False
            self._until = math.inf

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if self._until == math.inf:  # what compiles the step takes its own time
                self._until = now() + seconds
            if now() >= self._until:
                self.has_ended = self.model.stop_training = True

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if now() >= self._until and epoch + 1 < (self.params or {}).get("epochs", 0):
                self.has_ended = self.model.stop_training = True

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            if now() >= self._until:
                self.model.stop_evaluating = True

    return Ending()
