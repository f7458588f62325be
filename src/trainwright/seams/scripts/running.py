"""Runs a script, a notebook or a module as Python itself would."""

from __future__ import annotations

import contextlib
import functools
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainwright.seams.scripts.notebook import asks_for_shell, standing_for, text_of
from trainwright.seams.scripts.notebook_shell import Shell
from trainwright.seams.source.places import show, walking_module


@contextlib.contextmanager
def starting(script: str | Path, arguments: Sequence[str], *, module: bool) -> Iterator[Callable[[], Any]]:
    """A function that runs a script as `__main__`, with its own arguments and search path while the context lasts."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_as_program(str(script), arguments, module))
        stack.enter_context(walking_module(str(script) if module else ""))
        if module:
            yield functools.partial(runpy.run_module, str(script), run_name="__main__", alter_sys=True)
            return
        path = Path(script)
        notebook = stack.enter_context(_notebook(path))
        # The full path, as in `python script.py`: `__file__` stays valid after a change of directory.
        yield functools.partial(runpy.run_path, str(path.absolute()), init_globals=notebook, run_name="__main__")


@contextlib.contextmanager
def _notebook(path: Path) -> Iterator[dict[str, Any] | None]:
    """Run a notebook, or a file exported from one, as a script; yields its initial names."""
    text = text_of(path)
    if text is None and not asks_for_shell(path):
        yield None
        return
    os.environ.setdefault("MPLBACKEND", "agg")  # as in a notebook, no figure opens a window
    sys.path.insert(1, "")  # a kernel imports from its working directory, wherever that is
    shell = Shell(show(str(path)))
    with standing_for(path, text) if text is not None else contextlib.nullcontext():
        yield shell.namespace()


@contextlib.contextmanager
def _as_program(script: str, arguments: Sequence[str], module: bool) -> Iterator[None]:
    """Set `sys.argv` and `sys.path` as `python script.py` would."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path.cwd() if module else Path(script).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
