"""Keeps what the user's code would print or write to itself, while the walk runs it for a look."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

_WRITING = frozenset("wax+")


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Nothing is printed, and no file or folder is written through Python's own functions or `torch.save`."""
    torch = sys.modules.get("torch")
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(_replaced(builtins, "open", _reading_only(builtins.open)))
        stack.enter_context(_replaced(io, "open", _reading_only(io.open)))
        stack.enter_context(_replaced(os, "mkdir", lambda *args, **kwargs: None))
        if torch is not None:
            stack.enter_context(_replaced(torch, "save", lambda *args, **kwargs: None))
        yield


def _reading_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def open_for_reading(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if _WRITING & set(mode) and not isinstance(file, int):
            return original(os.devnull, mode.replace("x", "w"), *args, **kwargs)
        return original(file, mode, *args, **kwargs)

    return open_for_reading


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
