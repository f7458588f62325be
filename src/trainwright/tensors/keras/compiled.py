"""The losses and metrics that a Keras model was compiled with, by output name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The part of a compiled model, and its attribute, that hold compile's argument of this name.
_HELD = {
    "loss": ("_compile_loss", "_user_loss"),
    "loss_weights": ("_compile_loss", "_user_loss_weights"),
    "metrics": ("_compile_metrics", "_user_metrics"),
    "weighted_metrics": ("_compile_metrics", "_user_weighted_metrics"),
}


def output_names(model: Any, answer: Any) -> tuple[str, ...]:
    """The keys of a dictionary of outputs, or else the names that losses use for them; empty if there are none."""
    if isinstance(answer, Mapping):
        return tuple(map(str, answer))
    return tuple(getattr(getattr(model, "_compile_loss", None), "output_names", None) or ())


def outputs_named(model: Any, targets: Any, outputs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The output names in each dictionary passed to compile, and in the targets (`labels`)."""
    given = {name: getattr(getattr(model, part, None), held, None) for name, (part, held) in _HELD.items()}
    if len(outputs) == 1:  # all metrics are its
        given = {"loss": given["loss"]}
    given["labels"] = targets
    return {n: tuple(map(str, v)) for n, v in given.items() if isinstance(v, Mapping) and outputs}


def rename_outputs(model: Any, role: str, names: Mapping[str, str]) -> None:
    """Rename keys in one of compile's dictionaries; for the targets (`labels`), rename the outputs to match.

    Args:
        names: the new key for each present key.
    """
    parts = [p for p in (getattr(model, name, None) for name in ("_compile_loss", "_compile_metrics")) if p is not None]
    renamed: tuple[str, ...] = (role,)
    if role == "labels":  # the data stay as they are: losses and metrics look for their names
        renamed, names = tuple(_HELD), {new: old for old, new in names.items()}
        for part in parts:
            part.output_names = [names.get(n, n) for n in part.output_names or ()]
    for name in renamed:
        part = getattr(model, _HELD[name][0], None)
        given = getattr(part, _HELD[name][1], None)
        if isinstance(given, Mapping):
            setattr(part, _HELD[name][1], {names.get(k, k): v for k, v in given.items()})
    for part in parts:
        part.built = False


def losses_of(model: Any) -> list[Any]:
    """The losses passed to compile, in the form in which Keras calls them; empty if that is not known yet."""
    return [one.loss for one in getattr(getattr(model, "_compile_loss", None), "_flat_losses", None) or ()]


def give_no_loss(model: Any, names: Sequence[str]) -> None:
    """Add these outputs to a dictionary of losses, with None as their loss."""
    part = model._compile_loss
    part._user_loss, part.built = {**part._user_loss, **dict.fromkeys(names)}, False
