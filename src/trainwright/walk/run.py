"""Runs a script up to its training, walks that training, and in `run` lets it train for real."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Sequence
from pathlib import Path

from trainwright.core.report import Report
from trainwright.errors import UsageError
from trainwright.options import Options
from trainwright.seams.isolation.earlier_files import EarlierFiles
from trainwright.seams.scripts.running import starting
from trainwright.seams.source.places import show
from trainwright.walk.relaunch import Anew
from trainwright.walk.session import Say, Session
from trainwright.walk.walks import Done, Leave


def check_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    options: Options | None = None,
    *,
    module: bool = False,
    train: bool = False,
    say: Say = lambda text: None,
    done: Done = lambda report, further: None,
    leave: Leave = lambda: None,
    strict: bool = False,
) -> list[Report]:
    """Run a script (or module) up to its training and walk it, and go on to the next; one report per walked training.

    Args:
        train: then train for real if no error was found.
        done: called with each report as soon as the script no longer runs on behind it.
        leave: called where the script keeps its process alive, before that is ended; returns the exit status.
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
    earlier = EarlierFiles()

    def report_done(report: Report, further: int) -> None:
        earlier.restore()  # before our own files are written
        done(report, further)

    def leave_now() -> int | None:
        earlier.restore()
        return leave()

    session = Session(
        shown, options, train=train, say=say, done=report_done, leave=leave_now, strict=strict, every=not train
    )
    anew = Anew.of(script, arguments, module=module)
    linecache.checkcache()
    kept = contextlib.nullcontext() if train else earlier
    with kept, starting(script, arguments, module=module) as start:
        reports = session.run(start)
    if session.restart:
        del session, start
        anew.run()
    return reports
