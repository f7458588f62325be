"""The process of a rehearsal: isolates itself, runs the script, and writes the record.

    python -m trainwright.rehearsal.child REQUEST
    python -m trainwright.rehearsal.child --serve              imports the modules of the first line on standard input, then
                                                               forks a run for the request in the file that each further
                                                               line names, and answers with its status

It is isolated before anything else is imported, or right after the fork: only a process of one thread can be. A server only
imports: a process that has computed with several threads cannot be forked.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import signal
import sys
import warnings
from pathlib import Path

from trainwright.rehearsal.request import KERNEL, REFUSED, Request, Work
from trainwright.rehearsal.sandbox import IsolationRefused, Sandbox, enter_sandbox, forbid_writes, part_files


def main(file: str, work: Work | None = None) -> None:
    """Do what the request says; `work`: in the script's place."""
    end_with_parent()
    for stream in (sys.stdout, sys.stderr):  # read by the check: each line at once, also where the process dies
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, encoding="utf-8" if os.name == "nt" else None)
    request = Request.read(Path(file))
    record = request.record.open("wb")
    progress = os.open(request.progress, os.O_RDWR | os.O_CREAT)
    sandbox: Sandbox | None = None
    from trainwright.seams.processes import Exchange

    kept = [Exchange(request.starter).folder] if request.starter else []
    if request.isolation == KERNEL:
        try:
            sandbox = enter_sandbox(request.scratch, kept)
        except IsolationRefused as error:
            print(f"trainwright: {error}", file=sys.stderr)
            sys.exit(REFUSED)
    else:
        forbid_writes([Path(request.folder), *kept])
    if work is not None and sys.platform.startswith("linux"):
        part_files(Path(request.folder))
    from trainwright.rehearsal.run import note_own_error, run_script

    try:
        run_script(request, sandbox, record, progress, work)
    except Exception as error:  # ours, outside of the script: no report may blame the script for it
        note_own_error(error, record)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be one of the script's own
            stream.flush()
    os._exit(0)  # past the script's threads, workers and handlers


def end_with_parent() -> None:
    """Let the kernel end this process with the one that started it, where it can (PR_SET_PDEATHSIG, prctl(2))."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def fork(folder: str, file: str, work: Work | None = None) -> int:
    """Fork a process that does, in a folder, what the request in a file says; returns its number."""
    with warnings.catch_warnings():  # Python warns of other threads, which the run has no need of
        warnings.simplefilter("ignore")
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        sys.stdout = sys.stderr = os.fdopen(silent, "w", encoding="utf-8")  # a notebook's have a thread of their own
        if work is not None and (torch := sys.modules.get("torch")):
            torch.set_num_threads(1)  # a further thread of OpenMP would wait for those that the fork has left behind
        os.chdir(folder)
        main(file, work)
    except SystemExit as error:
        status = int(error.code or 0)
    finally:
        os._exit(status)  # what called this is the other process's


def serve() -> None:
    """Fork a run for each request, so that none pays for its imports."""
    end_with_parent()
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr  # imports may print
    os.dup2(2, 1)
    told = json.loads(sys.stdin.readline())
    gc.disable()
    _import_all(told["modules"], told["environment"])
    importlib.import_module("trainwright.rehearsal.run")
    if any(name in sys.modules for name in told["own"]):
        sys.exit(1)  # the script's module of this name would not be found
    from trainwright.rehearsal.imported import know_files

    know_files()
    gc.freeze()  # what was imported is no run's garbage
    gc.enable()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        folder, file = line.rstrip("\n").split("\t")
        child = fork(folder, file)
        print(child, file=answers, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


def _import_all(modules: list[str], environment: dict[str, str]) -> None:
    """Import modules with the variables that a script has set before it imported them; those that imports set stay."""
    before = dict(os.environ)
    os.environ.update(environment)
    given = dict(os.environ)
    for name in modules:
        with contextlib.suppress(Exception):  # a run that needs it imports it by itself
            importlib.import_module(name)
    made = {name: value for name, value in os.environ.items() if given.get(name) != value}
    os.environ.clear()
    os.environ.update({**before, **made})


if __name__ == "__main__" and sys.argv[1] == "--serve":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve()
elif __name__ == "__main__":
    main(sys.argv[1])
