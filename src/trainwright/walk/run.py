"""Runs a script up to its trainings, and walks them."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from pathlib import Path

from trainwright.core.report import Report
from trainwright.errors import UsageError
from trainwright.options import Options
from trainwright.seams.scripts.running import starting
from trainwright.seams.source.places import show
from trainwright.walk.session import Say, Session
from trainwright.walk.walks import Done, Leave, Written


def check_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    options: Options | None = None,
    *,
    module: bool = False,
    say: Say = lambda text: None,
    done: Done = lambda report, further: None,
    leave: Leave = lambda: None,
    written: Written = tuple,
    strict: bool = False,
) -> list[Report]:
    """Run a script (or module) up to its training and walk it, and go on to the next; one report per walked training.

    Args:
        done: called with each report as soon as the script no longer runs on behind it.
        leave: called where the script keeps its process alive, before that is ended.
        written: the files that the script has written so far, as far as the isolation knows them.
        strict: raise our own errors instead of recording them (tests).

    Raises:
        UsageError: if the script does not exist.
    """
    options = options or Options()
    options.check()
    path = Path(script)
    if not module and not path.is_file():
        raise UsageError(f"there is no file {script}; name an existing Python script.")
    shown = str(script) if module else show(str(path))
    session = Session(shown, options, say=say, done=done, leave=leave, written=written, strict=strict, every=True)
    linecache.checkcache()
    with starting(script, arguments, module=module) as start:
        return session.run(start)
