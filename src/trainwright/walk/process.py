"""A walk's process, seen from the check: started, listened to, ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from trainwright.core import Failure, Report, Stage, StageRun, Status
from trainwright.options import Options
from trainwright.rehearsal.sandbox import remove_scratch
from trainwright.seams.processes import Exchange, starter

NOT_ISOLATED = (
    "The kernel isolates no process here: files that the script opens with Python's own calls were redirected; what libraries "
    "in C write stays."
)
_POLL_SECONDS = 0.2
# A process that has walked has as many seconds to end, with what its script does at its end.
_LAST_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """A script to walk."""

    script: str
    arguments: tuple[str, ...]
    module: bool
    options: Options
    copies: Mapping[str, str] = field(default_factory=dict)
    """Texts that are run in the place of files, by their resolved paths."""
    shown_on_errors: bool = False
    """Whether reports are shown on standard error."""
    ends_lines: bool = True
    """Whether a line that the script has left open is ended before a report."""
    starter: int = field(default_factory=starter)
    """The process that started the check, and those of the training's other ranks."""


class InternalError(Exception):
    """An error of ours in the walk's process, by its traceback."""


class Walking:
    """A walk in a process of its own, which prepares itself while the check does. Use it as a context.

    Args:
        is_isolated: whether the kernel is to isolate it, where it can.
    """

    def __init__(self, *, is_isolated: bool = sys.platform.startswith("linux")) -> None:
        self._is_isolated = is_isolated

    def __enter__(self) -> Walking:
        self._folder = Path(tempfile.mkdtemp(prefix="trainwright-walk-"))
        self._exchange = Exchange(starter()).folder
        self._exchange.mkdir(mode=0o700, exist_ok=True)
        self._has_begun = False
        self._start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._connection.close()
        remove_scratch(self._folder)
        with contextlib.suppress(OSError):  # it holds what other ranks have put there
            self._exchange.rmdir()

    def _start(self) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        handle = theirs.fileno()
        if os.name == "nt":
            os.set_handle_inheritable(handle, True)  # type: ignore[attr-defined, unused-ignore]
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        inherited: dict[str, Any] = {"close_fds": False} if os.name == "nt" else {"pass_fds": [handle]}
        # No folder of the caller's comes before the packages' own (-P); the script's search path is made there.
        self._process = subprocess.Popen(
            [sys.executable, *flags, "-P", "-m", "trainwright.walk.child", str(handle)], **inherited
        )
        theirs.close()
        self._connection.send((self._folder if self._is_isolated else None, [self._exchange]))

    def run(self, task: Task, say: Callable[[str], None], done: Callable[[Report, int], None]) -> bool:
        """Walk; returns whether the process was ended, because the script kept it alive.

        Args:
            say: is told what the walk is doing.
            done: is given each report, and how many further ones follow at once.

        Raises:
            TrainwrightError: raised by the walk.
            InternalError: for an error of ours.
            KeyboardInterrupt: Ctrl-C came before there was anything to report.
        """
        self._connection.send(task)
        reported, ended = 0, ""
        with self._passing_on():
            for what, value in self._messages():
                if what == "refused":
                    self._process.wait()
                    self._is_isolated = False
                    self._start()
                    self._connection.send(task)
                elif what == "begun":
                    self._has_begun = True
                elif what == "say":
                    say(value)
                elif what == "report":
                    reported += 1
                    report, further = value
                    told = "" if self._is_isolated or reported > 1 else NOT_ISOLATED
                    done(replace(report, message=f"{report.message} {told}".strip()), further)
                    self._connection.send(None)
                else:
                    ended = what
                    self._end(what, value)
        if not ended and not reported:
            done(_of_lost(task.script, self._process.wait()), 0)
        return ended == "left"

    def _messages(self) -> Iterator[tuple[str, Any]]:
        """What the process tells, until it has ended."""
        is_over = False
        while not is_over:
            is_over = self._process.poll() is not None  # what it told before is still read
            try:
                while self._connection.poll(0 if is_over else _POLL_SECONDS):
                    yield self._connection.recv()
            except (EOFError, ConnectionError):  # it tells nothing more
                self._process.wait()
                return

    def _end(self, how: str, value: Any) -> None:
        """Wait for the end of a process that has done its task, and raise what ended that."""
        try:
            self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if how == "raised":
            raise value
        if how == "failed":
            raise InternalError(value)
        if how == "interrupted":
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _passing_on(self) -> Iterator[None]:
        """Leave Ctrl-C to the walk, which reports what it has seen so far."""

        def pass_on(number: int, frame: FrameType | None) -> None:
            if not self._has_begun:
                raise KeyboardInterrupt
            if not _is_on_terminal():
                self._process.send_signal(signal.SIGINT)

        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # interrupts are ignored, there as here
            yield
            return
        signal.signal(signal.SIGINT, pass_on)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_on_terminal() -> bool:
    """Whether a terminal sends Ctrl-C to this process and to those that it starts."""
    try:
        with open("/dev/tty") as terminal:  # noqa: PTH123 (a device)
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except (OSError, AttributeError):  # there is none
        return False


def _of_lost(script: str, status: int) -> Report:
    """The report of a process that told nothing before it ended."""
    ends = f"The script ended its process with status {status} before its check was over, so nothing was checked."
    if status >= 0:
        return Report(script=script, message=ends)
    name = signal.Signals(-status).name
    crash = f"{name} ended the script's process"
    return Report(
        script=script,
        stages=(StageRun(stage=Stage.SETUP, status=Status.FAILED, why=crash),),
        failure=Failure(type=name, message="the system, or a crash in native code, ended the process", where=None),
        message=f"{crash} before its check was over, so nothing was checked.",
    )
