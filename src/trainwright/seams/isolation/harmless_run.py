"""Runs a script's code without side effects: it cannot delete, move, send, wait or prompt."""

from __future__ import annotations

import builtins
import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

from trainwright.seams.failures.blame import of_pipeline
from trainwright.seams.isolation.commands import asks_only
from trainwright.seams.isolation.silence import muted, replaced

_REFUSED: tuple[tuple[Any, str], ...] = ((builtins, "input"), (os, "system"), (os, "_exit"))


class NotForALook(RuntimeError):
    """The script's code needs something that a dry run cannot do: typed input, another process."""


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """While the context lasts, nothing is printed, written, deleted, moved or shown, and nobody is prompted."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(muted())
        for owner, name in _REFUSED:
            stack.enter_context(replaced(owner, name, _refuse))
        stack.enter_context(replaced(time, "sleep", _nothing))
        stack.enter_context(replaced(subprocess, "Popen", _unread(subprocess.Popen)))
        yield


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise of_pipeline(NotForALook("Trainwright does not allow this during a walk"))


def _unread(quiet: Any) -> Callable[..., Any]:
    """Do not run commands; raise if a command's output is read, which would require running it."""

    def started(args: Any, *rest: Any, **kwargs: Any) -> Any:
        if kwargs.get("stdout") == subprocess.PIPE and not asks_only(args, kwargs):
            return _refuse()
        return quiet(args, *rest, **kwargs)

    return started


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None
