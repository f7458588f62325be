"""A rehearsal's process, seen from the check: started, waited for, ended."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trainwright.core.verdict import SHORT_OF_MEMORY
from trainwright.look.asking import Wanted
from trainwright.rehearsal.child import fork
from trainwright.rehearsal.in_place import run_in_place
from trainwright.rehearsal.memory import MemoryGuard
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Ended, Imported
from trainwright.rehearsal.request import KERNEL, PYTHON, REFUSED, Progress, Request, Work
from trainwright.rehearsal.sandbox import remove_scratch
from trainwright.rehearsal.streams import LastLine

_POLL_SECONDS = 0.1
# A process that was told to end has as many seconds to write what it saw.
_LAST_SECONDS = 120.0
# It is told again after so many.
_AGAIN_SECONDS = 5.0


def child_command() -> list[str]:
    """What starts a process of `rehearsal/child.py`. No folder of the caller's comes before the packages' own (-P); the
    script's own search path is made there."""
    flags = [*subprocess._args_from_interpreter_flags(), "-P"]  # type: ignore[attr-defined]
    return [sys.executable, *flags, "-m", "trainwright.rehearsal.child"]


class Server:
    """A process that has imported modules and forks runs, one at a time. Use it as a context.

    Args:
        environment: variables that runs find besides this process's.
        imported: what a script's run imported, with the variables that it had set.

    Raises:
        RuntimeError: if it ends.
    """

    def __init__(
        self, modules: Sequence[str], environment: Mapping[str, str] | None = None, imported: Imported | None = None
    ) -> None:
        self._environment = {**os.environ, **(environment or {})}
        self._told = {
            "modules": [*modules, *(imported.libraries if imported is not None else ())],
            "environment": dict(imported.environment) if imported is not None else {},
            "own": imported.own if imported is not None else (),
        }

    def __enter__(self) -> Server:
        self._process = subprocess.Popen(
            [*child_command(), "--serve"],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            self._write(json.dumps(self._told))
            self._read()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def fork(self, folder: Path, request: Path) -> Forked:
        """Start a run."""
        self._write(f"{folder}\t{request}")
        return Forked(int(self._read()), self._read)

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that forks runs has ended")
        return line.strip()


class Forking:
    """Forks this process for runs of its objects, which stay as they are: in the place of a `Server`."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def fork(self, folder: Path, request: Path) -> Forked:
        """Start a run."""
        child = fork(str(folder), str(request), self._work)
        return Forked(child, functools.partial(_wait_for, child))


def _wait_for(child: int) -> str:
    return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


class Forked:
    """A fork's run, with what is needed of the interface of `subprocess.Popen`."""

    def __init__(self, pid: int, read: Callable[[], str]) -> None:
        self.pid = pid
        self._status: int | None = None
        self._reader = threading.Thread(target=lambda: self._end(read()), daemon=True)
        self._reader.start()

    def _end(self, told: str) -> None:
        self._status = int(told)

    def poll(self) -> int | None:
        """Its exit status, or minus the signal; None while it runs."""
        return self._status

    def wait(self) -> None:
        """Wait for its end."""
        self._reader.join()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)


class Rehearsal:
    """A run of a script in a process of its own. Use it as a context: its end ends the process.

    Args:
        seconds: the limit of the run, from its first update on (`rehearsal/limits.py`).
        environment: variables that the process has besides this one's.
        folder: the script's working folder; this process's own without one.
        seed: moves the script's random seeds (`rehearsal/seeds.py`); 0 changes nothing.
        server: forks the process, which then has the server's environment, or runs objects of this one.
        watched: False: only its end and its seconds are recorded.
        samples: whether single rows may be shown.
        starter: the process that has started this one and those of the training's other processes, of which the run is one;
            0: of none.
    """

    def __init__(
        self,
        script: str,
        arguments: Sequence[str] = (),
        *,
        module: bool = False,
        device: str = "auto",
        seconds: float,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        seed: int = 0,
        server: Server | Forking | None = None,
        watched: bool = True,
        samples: bool = True,
        starter: int = 0,
    ) -> None:
        self._folder = tempfile.mkdtemp(prefix="trainwright-rehearsal-")
        self._request = Request(
            script=script,
            arguments=tuple(arguments),
            module=module,
            device=device,
            seconds=seconds,
            folder=self._folder,
            isolation=KERNEL if sys.platform.startswith("linux") else PYTHON,
            seed=seed,
            watched=watched,
            samples=samples,
            starter=starter,
        )
        self._environment = {**os.environ, **(environment or {})}
        self._here = folder or Path.cwd()
        self._server = server
        self._own_server = contextlib.ExitStack()
        self._imported: Imported | None = None
        """What the last run imported."""
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._printed: LastLine | None = None
        self._told_to_end: float | None = None
        self._told = 0
        """How often it was told."""
        self._memory: MemoryGuard | None = None

    def __enter__(self) -> Rehearsal:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._memory is not None:
            self._memory.stop()
        if self._process is not None:
            self._kill()
        self._own_server.close()
        remove_scratch(self._request.scratch)
        for file in Path(self._folder).glob("*"):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            Path(self._folder).rmdir()

    def start(self) -> None:
        """Start the process. It has a session of its own: Ctrl-C reaches the check alone."""
        file = self._request.write()
        if self._memory is not None:
            self._memory.stop()
        self._memory = MemoryGuard(self._end_now)
        self._printed = None
        if self._server is not None:
            self._process = self._server.fork(self._here, file)
        else:
            self._process = subprocess.Popen(
                [*child_command(), str(file)],
                cwd=self._here,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            assert self._process.stdout is not None
            self._printed = LastLine(self._process.stdout)
        self._memory.start()

    def start_again(
        self,
        copies: Mapping[str, str] | None = None,
        repairs: Sequence[Wanted] = (),
        device: str = "",
        seconds: float | None = None,
    ) -> None:
        """Start again after its end.

        Args:
            device: from now on; empty: the same.
            copies: texts in the place of files, by their resolved paths; those of the last start without any.
            repairs: are in force in this run alone.
            seconds: its limit from its first update on, and that of later runs; None: as before.
        """
        remove_scratch(self._request.scratch)
        for file in (self._request.record, self._request.progress, self._request.repairs):
            file.unlink(missing_ok=True)
        self._told_to_end = None
        if copies is not None:
            self._request = replace(self._request, copies=dict(copies))
        device, seconds = device or self._request.device, seconds or self._request.seconds
        self._request = replace(self._request, device=device, seconds=seconds)
        if repairs:
            self._request.repairs.write_bytes(pickle.dumps(list(repairs)))
        if self._server is None and self._imported is not None:
            with contextlib.suppress(RuntimeError, OSError):  # without it, each run imports by itself
                self._server = self._own_server.enter_context(Server((), self._environment, self._imported))
        self.start()

    def run_here(self, work: Work) -> Record:
        """Run objects in this process, which is not isolated; returns what was recorded."""
        self._request = replace(self._request, isolation=PYTHON)
        run_in_place(self._request, work)
        return self._read(0)

    @property
    def is_out_of_memory(self) -> bool:
        """Whether it was ended because the machine's memory ran short."""
        return self._memory is not None and self._memory.is_short

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return Progress.read(self._request.progress)

    def wait(
        self, say: Callable[[str], None] = lambda text: None, *, until: Callable[[], bool] = lambda: False
    ) -> Record:
        """Wait for its end; returns what was recorded.

        Args:
            say: is told how far it is.
            until: asked again and again whether to end it now.
        """
        assert self._process is not None
        while (status := self._process.poll()) is None:
            progress = self.progress
            say(_describe(progress, self._request.seconds))
            if self._told_to_end is None and (progress.seconds >= self._request.seconds or until()):
                self.end()
            waited = time.monotonic() - self._told_to_end if self._told_to_end is not None else 0.0
            if waited > _LAST_SECONDS:
                self._kill()
            elif waited > _AGAIN_SECONDS * self._told:  # Python drops what is raised in a callback of a weak reference
                self._tell_to_end()
            time.sleep(_POLL_SECONDS)
        if status == REFUSED and self._request.isolation == KERNEL:
            why = self._printed.find() if self._printed is not None else ""
            remove_scratch(self._request.scratch)
            self._request = replace(self._request, isolation=PYTHON)
            self.start()
            record = self.wait(say, until=until)
            record.remarks = tuple(filter(None, (*record.remarks, why)))
            return record
        return self._read(status)

    def end(self) -> None:
        """Tell the process to end and to write what it saw."""
        if self._process is not None and self._told_to_end is None:
            self._told_to_end, self._told = time.monotonic(), 0
            self._tell_to_end()

    def _tell_to_end(self) -> None:
        assert self._process is not None
        self._told += 1
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(getattr(signal, "SIGXCPU", signal.SIGTERM))

    def _end_now(self) -> bool:
        """End the process without a record, if it is under way."""
        is_under_way = self._process is not None and self._process.poll() is None
        if is_under_way:
            self._kill()
        return is_under_way

    def _kill(self) -> None:
        """End the process, with all that it started."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()

    def _read(self, status: int) -> Record:
        """The record; of a process that died without one, what it told on the way."""
        try:
            with self._request.record.open("rb") as file:
                record: Record = pickle.load(file)  # written by our own process
            self._imported = record.imported
        except (OSError, EOFError, pickle.UnpicklingError):
            progress = self.progress
            record = Record(updates=progress.updates, seconds=progress.seconds, isolation=self._request.isolation)
            if self.is_out_of_memory:
                record.ended = Ended(update=progress.updates, hindrance=SHORT_OF_MEMORY, is_cut=True)
            elif self._told_to_end is not None:
                record.ended = Ended(update=progress.updates, is_cut=True)
            else:
                record.ended = Ended(update=progress.updates, status=status)
        if self._printed is not None and self._request.samples and (record.ended.status or not record.updates):
            record.ended.printed = self._printed.find()
        return record


def _describe(progress: Progress, seconds: float) -> str:
    """How far it is, in a line."""
    if progress.began is None:
        return "running the script up to its training"
    loss = "" if progress.loss is None else f", loss {progress.loss:.4g}"
    left = max(0.0, seconds - progress.seconds)
    return f"rehearsing the script: {progress.updates:,} updates{loss}; at most {left:.0f} s left"
