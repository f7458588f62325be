"""What each layer of a Keras model gives in one pass, to see where two passes begin to differ."""

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
    """What was kept of one layer's result."""

    module: str
    kind: str
    where: Place
    values: np.ndarray


@contextlib.contextmanager
def traced(model: Any, seen: Seen, keep: Callable[[np.ndarray], np.ndarray | None]) -> Iterator[list[Given]]:
    """Keep, in the order in which layers end, what `keep` wants of the first tensor that each of the user's layers gives.

    A layer's own parts, which the library made, say nothing that the layer does not.
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
    """The first layer whose result differs between two passes, by more than a share of its scale."""
    for left, right in zip(one, other):
        if left.module != right.module or left.values.shape != right.values.shape:
            return None
        if difference(left.values, right.values) > beyond:
            return Origin(operation=left.kind, where=left.where, module=left.module)
    return None
