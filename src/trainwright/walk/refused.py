"""Calls that a framework refused: the facts of them, from the call itself or from the exception that was seen."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from trainwright.core.finding import Failure
from trainwright.seams.place import keyword_places
from trainwright.stages.setup import RefusedCall
from trainwright.walk.missing import distribution

_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")


def refused_call(name: str, function: Callable[..., Any], keywords: Mapping[str, Any], failure: Failure,
                 *, repairable: bool = True) -> RefusedCall:  # fmt: skip
    """The facts of a framework's call that raised."""
    found = _UNEXPECTED.search(failure.message)
    package = (getattr(function, "__module__", "") or "").split(".")[0]
    argument = found.group(1) if found else ""
    return RefusedCall(
        function=name,
        argument=argument,
        value=_plain(keywords.get(argument)),
        accepts=tuple(p for p in inspect.signature(function).parameters if p != "self"),
        given={k: _plain(v) for k, v in keywords.items()},
        library=distribution(package),
        failure=failure,
        repairable=repairable,
    )


def refused_anywhere(error: BaseException, failure: Failure) -> RefusedCall | None:
    """The call that raised `unexpected keyword argument`, found from the user's frame it was made in."""
    if not isinstance(error, TypeError) or not _UNEXPECTED.search(str(error)):
        return None
    from trainwright.seams.place import is_users, resolve_call

    link, frame = error.__traceback__, None
    while link is not None:
        if is_users(link.tb_frame.f_code.co_filename):
            frame, line = link.tb_frame, link.tb_lineno
        link = link.tb_next
    if frame is None:
        return None
    argument = _UNEXPECTED.search(str(error)).group(1)  # type: ignore[union-attr]
    found = resolve_call(frame, line, argument)
    if found is None:
        return None
    written = keyword_places(frame.f_code.co_filename, line)
    call = refused_call(*found, {}, failure, repairable=False)
    return replace(call, places={k: place for k, (place, _) in written.items()},
                   accepts=(*call.accepts, *_configured(found[0])))  # fmt: skip


def _configured(function: str) -> tuple[str, ...]:
    """Names that `from_pretrained` hands on to a model's configuration."""
    module = sys.modules.get("transformers.configuration_utils")
    config = getattr(module, "PreTrainedConfig", None)
    return (
        tuple(n for n in vars(config()) if not n.startswith("_"))
        if config and function.startswith("from_")
        else ()
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__
