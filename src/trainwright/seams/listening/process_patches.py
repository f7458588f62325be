"""Processes that a script starts for its training: they are forked, so that what they do is observed too."""

from __future__ import annotations

import functools
import sys
from typing import Any

from trainwright.seams.failures.blame import passed_on
from trainwright.seams.listening.seen import active, listener


def patch_processes(module: Any) -> None:
    """Fork the processes that a script starts for training, so that their actions are observed too."""
    original = module.start_processes

    @functools.wraps(original)
    def start_processes(
        fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
    ) -> Any:
        if not active() or sys.modules["torch"].cuda.is_initialized():  # a process that uses a GPU cannot be forked
            return passed_on(original, fn, args, nprocs, join, daemon, start_method)
        context = passed_on(original, functools.partial(_work, fn), args, nprocs, False, daemon, "fork")
        context.join = functools.partial(_join, context.join)
        while join and not context.join():
            pass
        return None if join else context

    module.start_processes = start_processes


def _join(original: Any, *args: Any, **kwargs: Any) -> Any:
    is_over = original(*args, **kwargs)
    listener().children_ended()  # a process that walked returns nothing, which launchers wait for in vain
    return is_over


def _work(fn: Any, rank: int, *args: Any) -> None:
    listener().in_child(functools.partial(fn, rank, *args))
