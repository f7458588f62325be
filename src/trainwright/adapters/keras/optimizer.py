"""A Keras optimizer: every argument with its value, given or default, and the lines that name them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainwright.core import Place
from trainwright.seams.listening.seen import BuiltObjects, Construction
from trainwright.seams.source.places import show
from trainwright.seams.source.written import assignment_place, call_node, keyword_places
from trainwright.stages import Argument
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import version


def resolve_arguments(optimizer: Any, seen: BuiltObjects, attribute: str = "optimizer") -> dict[str, Argument]:
    """Every argument of the optimizer, as `<attribute>.<name>`; marked as given if the script wrote it."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if inner is None:
        return {}
    parameters = inspect.signature(type(inner).__init__).parameters
    config, written = _config(inner), written_arguments(inner, seen)
    found = {}
    for name in parameters:
        if name in ("self", "name", "kwargs") or name not in config:
            continue
        found[f"{attribute}.{name}"] = Argument(value=_plain(config[name]), given=name in written)
    return found


def accumulated_batches(optimizer: Any) -> int:
    """How many batches the optimizer, or the one whose loss it scales, accumulates for an update."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return getattr(inner, "gradient_accumulation_steps", None) or 1


def _config(optimizer: Any) -> dict[str, Any]:
    try:
        return dict(optimizer.get_config())
    except (NotImplementedError, TypeError, AttributeError):  # a user's optimizer without one
        return {}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # a schedule, as Keras serializes it
        return value.get("class_name", "a schedule")
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.7g}")  # a rate is stored as float32
    return value if isinstance(value, (int, str, bool, type(None))) else type(value).__name__


def written_arguments(optimizer: Any, seen: BuiltObjects) -> frozenset[str]:
    """The arguments that the script wrote where it built the optimizer; none if a string names it."""
    built = seen.optimizers.get(optimizer)
    call = _call(built)
    if built is None or call is None:
        return frozenset()
    names = [n for n in inspect.signature(type(optimizer).__init__).parameters if n != "self"]
    if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return frozenset(names)
    return frozenset([*names[: len(call.args)], *(k.arg for k in call.keywords if k.arg)])


def _call(built: Construction | None) -> ast.Call | None:
    return call_node(built.frame_file, built.line, built.name, end=built.end) if built else None


def is_rate_given(optimizer: Any, seen: BuiltObjects) -> bool:
    """Whether the script wrote the rate; False if it is a default."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if "learning_rate" in written_arguments(inner, seen):
        return True
    default = inspect.signature(type(inner).__init__).parameters.get("learning_rate")
    if default is None or not isinstance(default.default, float):
        return True
    return abs(tensors.rate_of(inner) - default.default) > 1e-6 * default.default  # set on the object afterwards


def optimizer_places(optimizer: Any, seen: BuiltObjects) -> dict[str, Place]:
    """The lines that built the optimizer, its rate and its schedule."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    built = seen.optimizers.get(inner)
    if built is None:
        return {}
    rate = keyword_places(built.frame_file, built.line, built.name, end=built.end).get("learning_rate")
    found = {"optimizer": built.place, "learning_rate": rate[0] if rate else built.place}
    made = _schedule_place(inner, built)
    return {**found, "scheduler": made} if made is not None else found


def _schedule_place(optimizer: Any, built: Construction) -> Place | None:
    """The line that made the schedule passed to the optimizer."""
    call = _call(built)
    if call is None or not tensors.is_schedule(version().rate(optimizer)):
        return None
    by_name = (k.value for k in call.keywords if k.arg == "learning_rate")
    value = next(by_name, call.args[0] if call.args else None)
    if isinstance(value, ast.Name):
        return assignment_place(built.frame_file, value.id, built.line)
    return Place(show(built.frame_file), value.lineno) if value is not None else None


def compile_places(compiled: Construction | None) -> dict[str, Place]:
    """Where each argument of compile was written, by argument name."""
    if compiled is None:
        return {}
    written = keyword_places(compiled.frame_file, compiled.line, "compile", end=compiled.end)
    found = {name: place for name, (place, _) in written.items()}
    return {"compile": compiled.place, **{n: found.get(n, compiled.place) for n in ("optimizer", "loss")}, **found}
