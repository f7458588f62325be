"""Runs a script's code for a look only: it deletes, moves, sends, waits and asks for nothing."""

from __future__ import annotations

import builtins
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from trainwright.seams.mute import muted

_REFUSED: tuple[tuple[Any, str], ...] = (
    (builtins, "input"), (os, "system"), (subprocess, "Popen"), (os, "_exit"),
)  # fmt: skip
_WITHOUT_EFFECT: tuple[tuple[Any, str], ...] = ((os, "chmod"), (time, "sleep"))


class NotForALook(RuntimeError):
    """The script's code asks for what is not done for a look: an answer typed in, another process."""


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Nothing is printed, written, deleted, moved or shown, and nobody is asked, while the context lasts."""
    pictures = sys.modules.get("matplotlib.pyplot")
    with contextlib.ExitStack() as stack:
        stack.enter_context(muted())
        for owner, name in _REFUSED:
            stack.enter_context(_replaced(owner, name, _refuse))
        for owner, name in _WITHOUT_EFFECT:
            stack.enter_context(_replaced(owner, name, _nothing))
        for name in ("show", "pause", "savefig"):
            if pictures is not None and hasattr(pictures, name):
                stack.enter_context(_replaced(pictures, name, _nothing))
        yield


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise NotForALook("this is not done while the walk looks on")


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
