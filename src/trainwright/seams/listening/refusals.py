"""Which argument a call was refused for, told from what the frameworks say; and such a call made again, mended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from trainwright.seams.listening.seen import listener

# Python's own words; those of Keras's optimizers, of its layers, and of tf_keras's.
_UNKNOWN = re.compile(
    r"got an unexpected keyword argument '(\w+)'"
    r"|Argument\(s\) not recognized: \{'(\w+)'"
    r"|Unrecognized keyword arguments passed to \w+: \{'(\w+)'"
    r"|Keyword argument not understood:', '(\w+)'"
)
# A call may hold several refused arguments, each mended in turn.
_MOST_REFUSED = 8


def unknown_argument(message: str) -> str:
    """The argument that is no parameter of what was called; empty where the error speaks of something else."""
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
    """What a refused call gives with the arguments that a finding offers for it.

    Args:
        make: makes the call with these keywords.
        given: the keywords that were refused.
    Raises:
        Exception: what the call raised, where nothing is known for it.
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
