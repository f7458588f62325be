"""Finds which argument a call was rejected for in the framework's message, and repeats the call with a repair."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from trainwright.seams.listening.seen import listener

# Python's message; those of Keras's optimizers, its layers, and tf_keras's.
_UNKNOWN = re.compile(
    r"got an unexpected keyword argument '(\w+)'"
    r"|Argument\(s\) not recognized: \{'(\w+)'"
    r"|Unrecognized keyword arguments passed to \w+: \{'(\w+)'"
    r"|Keyword argument not understood:', '(\w+)'"
)
# A call may have several rejected arguments, each repaired in turn.
_MOST_REFUSED = 8


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
