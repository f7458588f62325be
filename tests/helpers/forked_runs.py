"""Runs commands in children of one process that has imported the frameworks: `with Runs(environment) as runs: runs.run(…)`.

A child starts in a moment, where an interpreter of its own would load torch and transformers for seconds. Its limits count
its processor time, a third as fast, as those of the tests' own process do (`conftest.py`).
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

_SERVER = """
import json, os, runpy, sys, time, traceback
import datasets, torch, transformers, transformers.trainer
for line in sys.stdin:
    words, folder, variables, log = json.loads(line)
    child = os.fork()
    if not child:
        status = 1
        try:
            file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdin = open(0, closefd=False)
            os.dup2(file, 1)
            os.dup2(file, 2)
            os.chdir(folder)
            os.environ.update(variables)
            module = words[0] == "-m"
            sys.argv = words[module:]
            sys.path[0] = folder if module else os.path.dirname(words[0])
            from trainwright.timing import Timing, count_time
            count_time(Timing(now=lambda: time.process_time() / 3, patience=10.0))
            if module:
                runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(words[0], run_name="__main__")
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            if isinstance(ended.code, str):
                print(ended.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Runs:
    """A process that forks a child for each command.

    Args:
        environment: of the process and its children.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    def __enter__(self) -> "Runs":
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
            start_new_session=True,
        )
        return self

    def run(self, *words: str, folder: Path, variables: dict[str, str]) -> tuple[int, str]:
        """The exit status of `python WORDS…` in a folder, and what it printed."""
        assert self._server.stdin is not None and self._server.stdout is not None
        log = folder / "printed.txt"
        self._server.stdin.write(json.dumps([words, str(folder), variables, str(log)]) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, "the process that forks has ended"
        return int(answer), log.read_text("utf-8", "replace")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()
