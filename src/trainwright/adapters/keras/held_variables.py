"""A Keras optimizer and the variables it holds: builds it for the model's own variables, or replaces it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from trainwright.tensors.keras.which_keras import version


def held_by(optimizer: Any) -> set[Any] | None:
    """The variables that an optimizer was built for; None if it was not built yet."""
    inner = _inner(optimizer)
    return version().held_by(inner) if inner is not None and version().is_built(inner) else None


def fit_optimizer(model: Any) -> None:
    """Build the optimizer for the model's current variables; replace one that was built for others."""
    optimizer = model.optimizer
    if optimizer is None or (version().is_built(optimizer) and _fits(optimizer, model)):
        return
    if version().is_built(optimizer):
        renew_optimizer(model)
    version().build_optimizer(model.optimizer, model.trainable_variables)


def renew_optimizer(model: Any) -> None:
    """Replace the optimizer with one of the same settings that holds no variables yet."""
    old = model.optimizer
    with _plain_rate(_inner(old)) as rate:
        model.optimizer = type(old).from_config(old.get_config())
    version().set_rate(_inner(model.optimizer), rate)


def _inner(optimizer: Any) -> Any:
    """The optimizer inside one that scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


@contextlib.contextmanager
def _plain_rate(optimizer: Any) -> Iterator[Any]:
    """Give an optimizer a number instead of a schedule, which may not be serializable; yields the original rate."""
    held, name = version().rate_in(optimizer)
    kept, rate = held.get(name), version().rate(optimizer)
    if callable(kept):
        held[name] = 0.0
    try:
        yield rate
    finally:
        held[name] = kept


def _fits(optimizer: Any, model: Any) -> bool:
    """Whether an optimizer was built for the model's current variables."""
    inner = _inner(optimizer)
    held = version().held_by(inner)
    slots = {tuple(v.shape) for v in version().slots(optimizer) if len(v.shape)}
    shapes = {tuple(v.shape) for v in model.trainable_variables if len(v.shape)}
    wanted = version().keys_of(inner, model.trainable_variables)
    return wanted <= held and (not slots or shapes <= slots)
