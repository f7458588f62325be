"""Runs a script up to its training, walks that training, and in `run` lets it train for real."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainwright.core.report import Report
from trainwright.errors import UsageError
from trainwright.options import Options
from trainwright.seams.scripts.notebook import asks_for_shell, standing_for, text_of
from trainwright.seams.scripts.notebook_shell import Shell
from trainwright.seams.source.places import show, walking_module
from trainwright.walk.relaunch import Anew
from trainwright.walk.session import Say, Session
from trainwright.walk.walks import Done


def check_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    options: Options | None = None,
    *,
    module: bool = False,
    train: bool = False,
    say: Say = lambda text: None,
    done: Done = lambda report, further: None,
    strict: bool = False,
) -> list[Report]:
    """Run a script (or module) up to its training and walk it, and go on to the next; one report per walked training.

    Args:
        train: then train for real if no error was found.
        done: called with each report as soon as the script no longer runs on behind it.
        strict: raise our own errors instead of recording them (tests).

    Raises:
        UsageError: if the script does not exist.
        ScriptFailed: if it raised during or after its real training.
        SystemExit: with its exit status, if it was run again for its real training and that is not 0.
    """
    options = options or Options()
    options.check()
    path = Path(script)
    if not module and not path.is_file():
        raise UsageError(f"there is no file {script}; name an existing Python script.")
    shown = str(script) if module else show(str(path))
    session = Session(shown, options, train=train, say=say, done=done, strict=strict, every=not train)
    anew = Anew.of(script, arguments, module=module)
    linecache.checkcache()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_as_program(str(script), arguments, module))
        stack.enter_context(walking_module(str(script) if module else ""))
        if module:
            start = functools.partial(runpy.run_module, str(script), run_name="__main__", alter_sys=True)
        else:
            notebook = stack.enter_context(_notebook(path))
            # The full path, as in `python script.py`: `__file__` stays valid after a change of directory.
            start = functools.partial(runpy.run_path, str(path.absolute()), init_globals=notebook, run_name="__main__")
        reports = session.run(start)
    if session.restart:
        del session, start
        anew.run()
    return reports


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
