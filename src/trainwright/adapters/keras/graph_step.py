"""The step that fit makes of a Keras model on TensorFlow: a graph, in which code that wants values finds none."""

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
    """What a step raises by the function that fit makes of it.

    None where no step of the walk's own failed when it was compiled, and no code of the user's is beside it.
    """
    model, stream = fit.model, None
    beside = fit.own_step or any(map(_is_users_function, _given(fit.compiled, "metrics", "weighted_metrics")))
    unlike = fit.active.kept or model.run_eagerly or model.optimizer is None
    if fit.backend.name != "tensorflow" or unlike or (fit.compiles and not beside):
        return None
    with tolerated():  # values that no tf.data.Dataset can hold
        stream = _repeated(fit, fit.take(1, seed=0)[0])
    if stream is None:
        return None
    if model.train_function is None:
        try:
            renew_optimizer(model)
        except Exception:  # an optimizer of the user's own that cannot be made anew
            return None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            model.make_train_function()
            model.train_function(stream)
    except Exception as error:  # the user's own code, or what TensorFlow says of it
        return failure_of(error)
    return None


def _repeated(fit: FitTraining, batch: Batch) -> Iterator[Any]:
    """A batch as TensorFlow's training function takes it, again and again.

    Tuples stand for lists, of which a tf.data.Dataset would make one tensor.
    """
    data = packed(keras.tree.lists_to_tuples(fit.tensors_of(batch)))
    return iter(sys.modules["tensorflow"].data.Dataset.from_tensors(data).repeat())


def _given(compiled: Construction | None, *names: str) -> list[Any]:
    """What compile was given by these names, lists and dictionaries taken apart."""
    return [part for name in names for part in keras.tree.flatten(compiled.given.get(name))] if compiled else []


def _is_users_function(value: Any) -> bool:
    code = getattr(value, "__code__", None) or getattr(getattr(type(value), "update_state", None), "__code__", None)
    return code is not None and is_users(code.co_filename)
