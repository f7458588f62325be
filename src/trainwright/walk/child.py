"""The process of a walk: isolates itself, runs the script up to its trainings, and tells the check what it finds.

    python -m trainwright.walk.child CONNECTION

It is isolated before anything else is imported: only a process of one thread can be.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from trainwright.rehearsal.sandbox import Refused, Sandbox, enter_sandbox

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from trainwright.core.report import Report
    from trainwright.walk.process import Task


def main(handle: int) -> None:
    """Isolate this process, import the walk, and do the task that it is sent then."""
    if sys.platform.startswith("linux"):  # the kernel ends it with the check (PR_SET_PDEATHSIG, prctl(2))
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the script runs, Ctrl-C is the check's
    check: Connection = getattr(connection, "PipeConnection" if os.name == "nt" else "Connection")(handle)
    if os.name != "nt":
        os.set_inheritable(handle, False)
    scratch, kept = check.recv()
    sandbox: Sandbox | None = None
    if scratch is not None:
        try:
            sandbox = enter_sandbox(scratch, kept)
        except Refused as error:
            check.send(("refused", str(error)))
            return
    import trainwright.walk.run  # noqa: F401 - while the check makes its own preparations

    task: Task = check.recv()
    signal.signal(signal.SIGINT, interrupt)
    _Walk(check, task, sandbox).run()


class _Walk:
    """The walk, of which the check is told; a copy of this process that the script forks tells nothing."""

    def __init__(self, check: Connection, task: Task, sandbox: Sandbox | None) -> None:
        self._check, self._task, self._sandbox, self._own = check, task, sandbox, os.getpid()
        self._streams = sys.stdout, sys.stderr  # a script may replace them

    def run(self) -> None:
        """Walk the script, and tell how that ended."""
        from trainwright.console import take_everything
        from trainwright.errors import TrainwrightError
        from trainwright.open_lines import watching_lines
        from trainwright.seams.isolation.silence import redirected
        from trainwright.seams.isolation.tally import Tally
        from trainwright.seams.processes import started_by
        from trainwright.seams.scripts.edited_files import standing_in
        from trainwright.walk.run import check_script

        task, sandbox = self._task, self._sandbox
        files = contextlib.nullcontext() if sandbox is not None else redirected(Tally())
        take_everything()
        started_by(task.starter)
        ended: tuple[str, Any] = "ended", None
        with watching_lines() as self._lines, standing_in(task.copies), files:
            self._tell("begun", None)
            try:
                check_script(
                    task.script,
                    task.arguments,
                    task.options,
                    module=task.module,
                    say=lambda text: self._tell("say", text),
                    done=self._report,
                    leave=lambda: self._tell("left", None),
                    written=list if sandbox is None else lambda: [str(file) for file in sandbox.list_written()],
                )
            except TrainwrightError as error:
                ended = "raised", error
            except KeyboardInterrupt:
                ended = "interrupted", None
            except Exception:  # ours: the check shows it as an internal error
                ended = "failed", traceback.format_exc()
            self._tell(*ended)

    def _report(self, report: Report, further: int) -> None:
        """Hand over a report, and wait until it is shown: what the script prints behind it comes behind it."""
        from trainwright.walk.closing import without_functions

        for stream in self._streams:
            stream.flush()
        if self._task.ends_lines:
            shown_on = self._streams[self._task.shown_on_errors]
            self._lines.end(shown_on)
            shown_on.flush()
        self._tell("report", (without_functions(report), further))
        if os.getpid() == self._own:
            self._check.recv()

    def _tell(self, what: str, value: Any) -> None:
        if os.getpid() == self._own:
            self._check.send((what, value))


if __name__ == "__main__":
    main(int(sys.argv[1]))
