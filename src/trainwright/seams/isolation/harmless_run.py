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
from trainwright.seams.isolation.silence import away, muted, replaced
from trainwright.seams.isolation.tally import Tally

_REFUSED: tuple[tuple[Any, str], ...] = ((builtins, "input"), (os, "system"))


class NotForALook(RuntimeError):
    """The script's code needs something that a dry run cannot do: typed input, another process."""


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """While the context lasts, nothing is printed, written, deleted, moved or shown, and nobody is prompted."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(muted())
        for owner, name in _REFUSED:
            stack.enter_context(replaced(owner, name, _refuse))
        # A worker of `datasets.map(num_proc=2)` that could not end would go on as a second check.
        stack.enter_context(replaced(os, "_exit", _refused_here(os._exit)))
        stack.enter_context(replaced(time, "sleep", _nothing))
        stack.enter_context(replaced(subprocess, "Popen", _unread(subprocess.Popen)))
        yield


@contextlib.contextmanager
def onward_aside(tally: Tally) -> Iterator[None]:
    """The same for a script that goes on behind a training; what it saves can be loaded again."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(away(tally, saves=True))
        stack.enter_context(replaced(builtins, "input", _refuse))
        stack.enter_context(replaced(time, "sleep", _nothing))
        for name in ("_exit", "execv", "execve"):
            stack.enter_context(replaced(os, name, _refused_here(getattr(os, name))))
        yield


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise of_pipeline(NotForALook("Trainwright does not allow this during a check"))


def _refused_here(original: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a call that would end this process; in a process that the script started, it is made."""
    own = os.getpid()
    return lambda *args: _refuse() if os.getpid() == own else original(*args)


def _unread(quiet: Any) -> Callable[..., Any]:
    """Do not run commands; raise if a command's output is read, which would require running it."""

    def started(args: Any, *rest: Any, **kwargs: Any) -> Any:
        if kwargs.get("stdout") == subprocess.PIPE and not asks_only(args, kwargs):
            return _refuse()
        return quiet(args, *rest, **kwargs)

    return started


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None
