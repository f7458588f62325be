"""The process of a rehearsal: isolates itself, runs the script, and writes the record.

    python -m trainwright.rehearsal.child REQUEST
    python -m trainwright.rehearsal.child --serve MODULE...    imports the modules, then forks a run for each request whose
                                                               file it is told on standard input; answers with its status

It is isolated before anything else is imported, or right after the fork: only a process of one thread can be. A server only
imports: a process that has computed with several threads cannot be forked.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from pathlib import Path

from trainwright.rehearsal.request import KERNEL, REFUSED, Request
from trainwright.rehearsal.sandbox import Refused, Sandbox, enter_sandbox


def main(file: str) -> None:
    """Do what the request says."""
    end_with_parent()
    request = Request.read(Path(file))
    record = request.record.open("wb")
    progress = os.open(request.progress, os.O_RDWR | os.O_CREAT)
    sandbox: Sandbox | None = None
    if request.isolation == KERNEL:
        try:
            sandbox = enter_sandbox(request.scratch)
        except Refused as error:
            print(f"trainwright: {error}", file=sys.stderr)
            sys.exit(REFUSED)
    from trainwright.rehearsal.run import run_script

    run_script(request, sandbox, record, progress)
    os._exit(0)  # past the script's threads, workers and handlers


def end_with_parent() -> None:
    """Let the kernel end this process with the one that started it, where it can (PR_SET_PDEATHSIG, prctl(2))."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def serve(modules: list[str]) -> None:
    """Fork a run for each request, so that none pays for its imports."""
    end_with_parent()
    for name in modules:
        importlib.import_module(name)
    importlib.import_module("trainwright.rehearsal.run")
    print("ready", flush=True)
    for line in sys.stdin:
        folder, file = line.rstrip("\n").split("\t")
        child = os.fork()
        if not child:
            os.setsid()
            silent = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(silent, descriptor)
            os.chdir(folder)
            main(file)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__" and sys.argv[1] == "--serve":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.argv[2:])
elif __name__ == "__main__":
    main(sys.argv[1])
