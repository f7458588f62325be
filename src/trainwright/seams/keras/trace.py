"""Traces the output of each Keras layer in one pass, to find where two passes begin to differ."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.core.finding import Place
from trainwright.probes.forward import difference
from trainwright.seams.listening.seen import Seen
from trainwright.stages.forward import Origin
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras


@dataclass(frozen=True)
class Given:
    """The recorded part of one layer's output."""

    module: str
    kind: str
    where: Place
    values: np.ndarray

    @property
    def name(self) -> str:
        """The layer's path."""
        return self.module


@contextlib.contextmanager
def traced(model: Any, seen: Seen, keep: Callable[[np.ndarray], np.ndarray | None]) -> Iterator[list[Given]]:
    """Record, in the order in which layers finish, what `keep` returns for the first tensor of each layer's output.

    Only the user's layers count: a layer's own parts, which the library created, add nothing to the layer itself.
    """
    layers = [(path, layer) for path, layer in tensors.named_layers(model).items() if layer in seen.modules]
    names = {id(layer): path for path, layer in layers}
    given: list[Given] = []
    owner = keras.layers.Layer
    original = owner.__call__

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(layer, *args, **kwargs)
        values = [t for t in tensors.leaves(result) if tensors.is_tensor(t) and tensors.has_values(t)]
        kept = keep(tensors.to_numpy(values[0])) if id(layer) in names and values else None
        if kept is not None:
            given.append(Given(names[id(layer)], type(layer).__name__, seen.modules[layer], kept))
        return result

    owner.__call__ = call
    try:
        yield given
    finally:
        owner.__call__ = original


def first_difference(one: list[Given], other: list[Given], beyond: float) -> Origin | None:
    """The first layer whose output differs between two passes by more than a fraction of its scale."""
    for left, right in zip(one, other):
        if left.module != right.module or left.values.shape != right.values.shape:
            return None
        if difference(left.values, right.values) > beyond:
            return Origin(operation=left.kind, where=left.where, module=left.module)
    return None
