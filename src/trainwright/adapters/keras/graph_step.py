"""The step that fit builds from a Keras model on TensorFlow: a graph, in which code that needs values fails."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

from trainwright.adapters.keras.custom_step import packed
from trainwright.adapters.keras.held_variables import renew_optimizer
from trainwright.adapters.keras.input.one_batch import Batch
from trainwright.adapters.keras.training import FitTraining
from trainwright.core.finding import Failure
from trainwright.seams.failures.blame import failure_of, tolerated
from trainwright.seams.listening.seen import Construction
from trainwright.seams.source.places import is_users
from trainwright.tensors.keras.which_keras import keras


def failure_in_graph(fit: FitTraining) -> Failure | None:
    """What a step raises when run by fit's graph function.

    None if the check's own steps compile and the user's code adds nothing to them.
    """
    model, stream = fit.model, None
    beside = fit.own_step or any(map(_is_users_function, _given(fit.compiled, "metrics", "weighted_metrics")))
    unlike = fit.active.kept or model.run_eagerly or model.optimizer is None
    if fit.backend.name != "tensorflow" or unlike or (fit.compiles and not beside):
        return None
    with tolerated():  # values that a tf.data.Dataset cannot hold
        stream = _repeated(fit, fit.take(1, seed=0)[0])
    if stream is None:
        return None
    if model.train_function is None:
        try:
            renew_optimizer(model)
        except Exception:  # a user's optimizer that cannot be rebuilt
            return None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            model.make_train_function()
            model.train_function(stream)
    except Exception as error:  # raised by the user's code or by TensorFlow about it
        return failure_of(error)
    return None


def _repeated(fit: FitTraining, batch: Batch) -> Iterator[Any]:
    """Repeat a batch, in the form that TensorFlow's training function takes.

    Lists become tuples, because a tf.data.Dataset would turn a list into one tensor.
    """
    data = packed(keras.tree.lists_to_tuples(fit.tensors_of(batch)))
    return iter(sys.modules["tensorflow"].data.Dataset.from_tensors(data).repeat())


def _given(compiled: Construction | None, *names: str) -> list[Any]:
    """The values of compile's arguments with these names, with lists and dictionaries flattened."""
    return [part for name in names for part in keras.tree.flatten(compiled.given.get(name))] if compiled else []


def _is_users_function(value: Any) -> bool:
    code = getattr(value, "__code__", None) or getattr(getattr(type(value), "update_state", None), "__code__", None)
    return code is not None and is_users(code.co_filename)
