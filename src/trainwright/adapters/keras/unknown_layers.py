"""Layers that a Keras model calls but does not track: the attributes that hold them, or that calls build them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import attribute_place
from trainwright.stages import PlainList, RebuiltLayer
from trainwright.tensors.keras import objects as tensors


def unlisted_layers(model: Any, called: Sequence[Any]) -> Iterator[PlainList]:
    """The attributes of the model or its layers that hold the untracked layers.

    Args:
        called: the layers.
    """
    left = list(called)
    for path, owner in tensors.named_layers(model).items():
        for attribute, value in list(vars(owner).items()):
            below = [la for la in tensors.layers_below(value) if any(la is one for one in left)]
            if not below or attribute.startswith("_"):
                continue
            left = [one for one in left if not any(one is la for la in below)]
            file = getattr(sys.modules.get(type(owner).__module__), "__file__", None)
            yield PlainList(
                name=f"{path}.{attribute}" if path else attribute,
                kind=type(value).__name__,
                modules=len(below),
                parameters=sum(int(np.prod(v.shape)) for la in below for v in la.weights),
                where=attribute_place(file, type(owner).__name__, attribute) if file and is_users(file) else None,
            )


def rebuilt_layers(first: StepRecord, again: StepRecord) -> Iterator[RebuiltLayer]:
    """The layers of one pass over a batch that another pass replaced with others of the same type."""
    others = [(type(la), at) for la, at in zip(again.unlisted, again.unlisted_at)]
    for layer, at in zip(first.unlisted, first.unlisted_at):
        if (type(layer), at) in others and not any(layer is la for la in again.unlisted):
            yield RebuiltLayer(
                kind=type(layer).__name__, parameters=sum(int(np.prod(v.shape)) for v in layer.weights), where=at
            )
