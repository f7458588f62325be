"""Finds which argument a call was rejected for in the framework's message, and repeats the call with a repair: constructors of
Keras, and methods of its models that begin a training."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from trainwright.seams.listening.seen import active, builder_frame, listener

# Python's message; those of Keras's optimizers, its layers, and tf_keras's.
_UNKNOWN = re.compile(
    r"got an unexpected keyword argument '(\w+)'"
    r"|Argument\(s\) not recognized: \{'(\w+)'"
    r"|Unrecognized keyword arguments passed to \w+: \{'(\w+)'"
    r"|Keyword argument not understood:', '(\w+)'"
)
# A call may have several rejected arguments, each repaired in turn.
_MOST_REFUSED = 8
_NAMESPACES = ("layers", "optimizers", "callbacks", "losses", "metrics")


def unknown_argument(message: str) -> str:
    """The argument that the callee does not accept; empty if the error is about something else."""
    found = _UNKNOWN.search(message)
    return next(name for name in found.groups() if name) if found else ""


def made_again(
    make: Callable[[Mapping[str, Any]], Any],
    name: str,
    function: Callable[..., Any],
    given: Mapping[str, Any],
    error: Exception,
    frame: FrameType,
) -> Any:
    """The result of a rejected call when repeated with the arguments that a finding proposes.

    Args:
        make: makes the call with these keywords.
        given: the rejected keywords.

    Raises:
        Exception: the call's error, if there is no proposal for it.
    """
    for _ in range(_MOST_REFUSED):
        known = unknown_argument(str(error)) in given
        mended = listener().on_refusal(name, function, given, error, frame) if known else None
        if mended is None:
            raise error
        try:
            return make(mended)
        except (TypeError, ValueError) as another:
            given, error = mended, another
    raise error


def patch_constructors(keras: Any) -> None:
    """Let rejected layers, optimizers, callbacks, losses and metrics be constructed again with other arguments."""
    classes = {
        kind
        for name in _NAMESPACES
        for kind in vars(getattr(keras, name)).values()
        if isinstance(kind, type) and inspect.isfunction(vars(kind).get("__init__"))
    }
    for kind in classes:
        _watch(kind)


def _watch(kind: Any) -> None:
    original = kind.__init__
    signature = inspect.signature(original)
    parameters = list(signature.parameters.values())[1:]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]

    # Under this name, the base classes' constructor watchers skip this frame (seams/source/places.py).
    @functools.wraps(original)
    def passed_on(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except (TypeError, ValueError) as error:
            frame = builder_frame(self) if active() and type(self).__init__ is passed_on else None
            if frame is None:
                raise
            given = {**dict(zip(names, args)), **kwargs}
            made_again(lambda mended: original(self, **mended), kind.__name__, kind, given, error, frame)

    # Keras reads a layer's arguments from its constructor's signature and does not unwrap it.
    passed_on.__signature__ = signature  # type: ignore[attr-defined]
    kind.__init__ = passed_on


def arguments_of(
    name: str, method: Any, model: Any, frame: FrameType, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments that the user's frame passes to a model's method, by the method's parameter names.

    Raises:
        TypeError: an argument is unknown, and no repair is available.
    """
    signature = inspect.signature(method)
    try:
        bound = signature.bind(model, *args, **kwargs)
    except TypeError as error:
        bound = made_again(lambda mended: signature.bind(model, *args, **mended), name, method, kwargs, error, frame)
    given = {k: v for k, v in bound.arguments.items() if k != "self"}
    for rest in (p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD):
        given |= given.pop(rest, {})
    return given
