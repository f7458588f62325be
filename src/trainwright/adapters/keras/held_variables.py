"""A Keras model's optimizer and the variables that it holds: built for the model's own, or made anew."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from trainwright.tensors.keras.which_keras import version


def held_by(optimizer: Any) -> set[Any] | None:
    """The variables that an optimizer was built for, as it knows them; None where it was not built yet."""
    inner = _inner(optimizer)
    return version().held_by(inner) if inner is not None and version().is_built(inner) else None


def fit_optimizer(model: Any) -> None:
    """Let the optimizer hold the model's variables as they are; one that was built for others is made anew."""
    optimizer = model.optimizer
    if optimizer is None or (version().is_built(optimizer) and _fits(optimizer, model)):
        return
    if version().is_built(optimizer):
        renew_optimizer(model)
    version().build_optimizer(model.optimizer, model.trainable_variables)


def renew_optimizer(model: Any) -> None:
    """Another optimizer of the same settings, that holds no variables yet."""
    old = model.optimizer
    with _plain_rate(_inner(old)) as rate:
        model.optimizer = type(old).from_config(old.get_config())
    version().set_rate(_inner(model.optimizer), rate)


def _inner(optimizer: Any) -> Any:
    """The optimizer within one that scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


@contextlib.contextmanager
def _plain_rate(optimizer: Any) -> Iterator[Any]:
    """Let an optimizer have a number for a schedule, for a user's own need not be one that can be written down; its rate."""
    held, name = version().rate_in(optimizer)
    kept, rate = held.get(name), version().rate(optimizer)
    if callable(kept):
        held[name] = 0.0
    try:
        yield rate
    finally:
        held[name] = kept


def _fits(optimizer: Any, model: Any) -> bool:
    """Whether an optimizer was built for the model's variables as they are."""
    inner = _inner(optimizer)
    held = version().held_by(inner)
    slots = {tuple(v.shape) for v in version().slots(optimizer) if len(v.shape)}
    shapes = {tuple(v.shape) for v in model.trainable_variables if len(v.shape)}
    wanted = version().keys_of(inner, model.trainable_variables)
    return wanted <= held and (not slots or shapes <= slots)
