"""Helpers for calling a Keras model: converting arrays to tensors, catching exceptions, telling whose method it is."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

import numpy as np

from trainwright.core import Stage
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.source.places import is_users
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras


def is_own(model: Any, method: str) -> bool:
    """Whether the user's class overrides a method."""
    return own_code(model, method) is not None


def own_code(model: Any, method: str) -> CodeType | None:
    """The code of the user's override of a method, without a compiler's wrapper; None if there is none."""
    function = getattr(type(model), method, None)
    if not hasattr(function, "__code__"):  # tf.function, jax.jit
        function = getattr(function, "python_function", getattr(function, "__wrapped__", None))
    code: CodeType | None = getattr(function, "__code__", None)
    return code if code is not None and is_users(code.co_filename) else None


def callbacks_of(given: Mapping[str, Any]) -> list[Any]:
    """The callbacks that fit was given, in order: one, several at any depth, or a CallbackList."""
    found = given.get("callbacks")
    flat = keras.tree.flatten(getattr(found, "callbacks", found))
    return [c for c in flat if c is not None]


def as_tensors(structure: Any) -> Any:
    """NumPy arrays as the backend's tensors; text becomes a TensorFlow tensor or stays as it is."""

    def convert(value: Any) -> Any:
        if value is None:
            return None
        array = np.asarray(value)
        if array.dtype.kind in "SUO":
            tf = sys.modules.get("tensorflow")
            return tf.convert_to_tensor(array) if tf is not None else array
        return keras.ops.convert_to_tensor(array)

    return keras.tree.map_structure(convert, structure) if structure is not None else None


@contextlib.contextmanager
def catching(record: StepRecord) -> Iterator[None]:
    """Record what the user's pipeline raises."""
    try:
        yield
    except Exception as error:  # the user's model, loss or optimizer raised, which is a finding
        if record.failure is None or record.error is not error:
            record.failed_stage = record.failed_stage or Stage.GRADIENTS
            record.error = error
        record.failure = failure_of(error)


@contextlib.contextmanager
def failing_as(record: StepRecord, stage: Stage) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if record.failure is None:
            record.failed_stage, record.error, record.failure = stage, error, failure_of(error)
        raise


def first_array(output: Any) -> np.ndarray | None:
    """The first tensor of an output, as an array."""
    found = next((t for t in tensors.leaves(output) if tensors.is_tensor(t)), None) if output is not None else None
    return tensors.to_numpy(found) if found is not None else None
