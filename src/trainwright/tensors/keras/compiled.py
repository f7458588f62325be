"""What compile gave a Keras model for its outputs, by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The part of a compiled model, and its attribute, that hold what compile was given under a name.
_HELD = {
    "loss": ("_compile_loss", "_user_loss"),
    "loss_weights": ("_compile_loss", "_user_loss_weights"),
    "metrics": ("_compile_metrics", "_user_metrics"),
    "weighted_metrics": ("_compile_metrics", "_user_weighted_metrics"),
}


def output_names(model: Any, answer: Any) -> tuple[str, ...]:
    """The keys of a dictionary of outputs, else the names by which losses know them; empty where they know none."""
    if isinstance(answer, Mapping):
        return tuple(map(str, answer))
    return tuple(getattr(getattr(model, "_compile_loss", None), "output_names", None) or ())


def outputs_named(model: Any, targets: Any, outputs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The names in each dictionary of compile's that is read by them, and in the targets (`labels`)."""
    given = {name: getattr(getattr(model, part, None), held, None) for name, (part, held) in _HELD.items()}
    if len(outputs) == 1:  # all metrics are its
        given = {"loss": given["loss"]}
    given["labels"] = targets
    return {n: tuple(map(str, v)) for n, v in given.items() if isinstance(v, Mapping) and outputs}


def rename_outputs(model: Any, role: str, names: Mapping[str, str]) -> None:
    """Let one of compile's dictionaries have other keys; of the targets (`labels`), the outputs take theirs.

    Args:
        names: the key there is, and what it is to be.
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
    """The losses given to compile, as Keras calls them, once it has called them; empty where that is not known."""
    return [one.loss for one in getattr(getattr(model, "_compile_loss", None), "_flat_losses", None) or ()]


def give_no_loss(model: Any, names: Sequence[str]) -> None:
    """Let a dictionary of losses name these outputs too, with None."""
    part = model._compile_loss
    part._user_loss, part.built = {**part._user_loss, **dict.fromkeys(names)}, False
