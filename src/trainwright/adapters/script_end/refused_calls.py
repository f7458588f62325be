"""Calls that a framework refused: the facts of them, from the call itself or from the exception that was seen."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

from trainwright.adapters.script_end.missing_names import distribution
from trainwright.core import Failure, Place
from trainwright.frameworks.packages import CONFIGURATION
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.listening.refusals import unknown_argument
from trainwright.seams.source.places import place_of, show
from trainwright.seams.source.written import call_end, failed_lines, keyword_places, last_name, look_up
from trainwright.stages import RefusedCall


def refused_call(
    name: str, function: Callable[..., Any], keywords: Mapping[str, Any], failure: Failure, *, repairable: bool = True
) -> RefusedCall:
    """The facts of a framework call that raised."""
    package = (getattr(function, "__module__", "") or "").split(".")[0]
    argument = unknown_argument(failure.message)
    return RefusedCall(
        function=name,
        argument=argument,
        value=_plain(keywords.get(argument)),
        accepts=list_parameters(function),
        given={k: _plain(v) for k, v in keywords.items()},
        library=distribution(package),
        failure=failure,
        repairable=repairable,
    )


def refused_in(
    name: str, function: Callable[..., Any], keywords: Mapping[str, Any], error: Exception, frame: FrameType
) -> RefusedCall:
    """The facts of a framework's constructor that rejected its arguments, called in this frame of the script."""
    failure = replace(failure_of(error), where=place_of(frame))
    written = keyword_places(frame.f_code.co_filename, frame.f_lineno, name, end=call_end(frame))
    places = {argument: place for argument, (place, _) in written.items()}
    return replace(refused_call(name, function, keywords, failure), places=places)


def list_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters; for a class, those of its constructor and of the bases that it calls."""
    kinds = [k for k in getattr(function, "__mro__", ()) if inspect.isfunction(vars(k).get("__init__"))]
    names: list[str] = []
    for one in [k.__init__ for k in kinds] or [function]:
        parameters = inspect.signature(one).parameters.values()
        names += [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return tuple(n for n in dict.fromkeys(names) if n != "self")


def refused_anywhere(error: BaseException, failure: Failure) -> RefusedCall | None:
    """The call that was refused for an argument, found from the user's frame it was made in."""
    argument = unknown_argument(str(error)) if isinstance(error, (TypeError, ValueError)) else ""
    lines = failed_lines(error) if argument else []
    written = lines[-1].call(frozenset({argument})) if lines else None
    if written is None or argument not in {k.arg for k in written.keywords}:
        return None
    name, function = last_name(written.func), look_up(written.func, lines[-1].scope)
    if not callable(function):
        return None
    call = refused_call(name, function, {}, failure, repairable=False)
    file = show(lines[-1].frame.f_code.co_filename)
    return replace(
        call,
        places={k.arg: Place(file, k.value.lineno) for k in written.keywords if k.arg},
        accepts=(*call.accepts, *_configured(name)),
    )


def _configured(function: str) -> tuple[str, ...]:
    """Names that `from_pretrained` passes on to a model's configuration."""
    module, kind = CONFIGURATION
    config = getattr(sys.modules.get(module), kind, None)
    return tuple(n for n in vars(config()) if not n.startswith("_")) if config and function.startswith("from_") else ()


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__
