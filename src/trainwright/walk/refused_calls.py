"""Calls that a framework refused: the facts of them, from the call itself or from the exception that was seen."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from trainwright.core.finding import Failure
from trainwright.frameworks.packages import CONFIGURATION
from trainwright.seams.listening.refusals import unknown_argument
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import keyword_places, resolve_call
from trainwright.stages.setup import RefusedCall
from trainwright.walk.missing_names import distribution


def refused_call(
    name: str,
    function: Callable[..., Any],
    keywords: Mapping[str, Any],
    failure: Failure,
    *,
    repairable: bool = True,
) -> RefusedCall:
    """The facts of a framework's call that raised."""
    package = (getattr(function, "__module__", "") or "").split(".")[0]
    argument = unknown_argument(failure.message)
    return RefusedCall(
        function=name,
        argument=argument,
        value=_plain(keywords.get(argument)),
        accepts=accepted(function),
        given={k: _plain(v) for k, v in keywords.items()},
        library=distribution(package),
        failure=failure,
        repairable=repairable,
    )


def accepted(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters; of a class, those of its constructor and of the bases to which it hands on."""
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
    if not argument:
        return None
    link, frame = error.__traceback__, None
    while link is not None:
        if is_users(link.tb_frame.f_code.co_filename):
            frame, line = link.tb_frame, link.tb_lineno
        link = link.tb_next
    if frame is None:
        return None
    found = resolve_call(frame, line, argument)
    if found is None:
        return None
    written = keyword_places(frame.f_code.co_filename, line)
    call = refused_call(*found, {}, failure, repairable=False)
    return replace(
        call,
        places={k: place for k, (place, _) in written.items()},
        accepts=(*call.accepts, *_configured(found[0])),
    )


def _configured(function: str) -> tuple[str, ...]:
    """Names that `from_pretrained` hands on to a model's configuration."""
    module, kind = CONFIGURATION
    config = getattr(sys.modules.get(module), kind, None)
    return (
        tuple(n for n in vars(config()) if not n.startswith("_"))
        if config and function.startswith("from_")
        else ()
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__
