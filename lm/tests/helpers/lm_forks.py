"""Trainings in processes of their own, each forked from one that has torch loaded, so that it takes half a second.

A training can be told to kill itself with SIGKILL at its n-th event: before or within an update, a line of the
log, a file of a checkpoint, a flush, a rename, a removal. Run as a script it is the process that forks.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HELPERS = Path(__file__).parent


class Forks:
    """The process that forks; a context manager."""

    def __enter__(self) -> Forks:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def train(
        self, data: Path, out: Path, settings: Sequence[str] = (), *, kill_at: int = -1, file_bytes: int = -1
    ) -> dict[str, Any]:
        """Train a small recipe; `status` (negative: the signal's number), `events` and `said` of it.

        Args:
            kill_at: the event to die at; -1: none.
            file_bytes: no file may grow beyond; -1: any may.
        """
        order = {"data": str(data), "out": str(out), "settings": list(settings), "kill_at": kill_at,
                 "file_bytes": file_bytes}  # fmt: skip
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class Events:
    """What happens in a training, counted; it dies at one of them."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self._kill_at = kill_at

    def happens(self, half: Callable[[], None] = lambda: None) -> None:
        """One more; if it is the last one, half of it is done before the end."""
        if self.count == self._kill_at:
            half()
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def watch(self) -> None:
        """Be told of them all."""
        import shutil

        from trainwright_lm.runs import checkpoint
        from trainwright_lm.training import log, train

        self._before(os, "fsync")
        self._before(shutil, "rmtree")
        self._before(Path, "rename")
        self._before(Path, "replace")
        self._before(train, "take_update")
        write_line, save_file = log.Log.write, checkpoint.save_file

        def write(own: Any, kind: str, update: int, values: Any) -> None:
            def half() -> None:
                with own._file.open("a") as stream:
                    stream.write('{"kind": "train", "upd')

            self.happens(half)
            write_line(own, kind, update, values)

        def save(tensors: Any, file: Path, metadata: Any) -> None:
            self.happens()
            save_file(tensors, file, metadata)
            self.happens(lambda: os.truncate(file, file.stat().st_size // 2))

        log.Log.write, checkpoint.save_file = write, save

    def _before(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def called(*arguments: Any, **named: Any) -> Any:
            self.happens()
            return original(*arguments, **named)

        setattr(owner, name, called)


def trained(order: dict[str, Any], report: int) -> None:
    """In the forked process: train, and report what was said and how many events there were."""
    from lm_material import small_recipe
    from trainwright.errors import TrainwrightError
    from trainwright_lm.tokens.prepared import open_data
    from trainwright_lm.training import live
    from trainwright_lm.training.train import train

    said: list[str] = []
    live.Live.say = lambda self, text: said.append(text)
    events = Events(order["kill_at"])
    if order["file_bytes"] >= 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], resource.RLIM_INFINITY))
    events.watch()
    status = 0
    try:
        train(open_data(Path(order["data"])), Path(order["out"]), small_recipe(*order["settings"]))
    except TrainwrightError as error:
        said.append(f"{type(error).__name__}: {error}")
        status = 2
    os.write(report, json.dumps({"status": status, "events": events.count, "said": said}).encode())


def serve() -> None:
    """Fork a training for each order that comes."""
    import torch._dynamo  # noqa: F401 - an optimizer would import it, in each process anew

    import trainwright_lm.training.train  # noqa: F401

    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                trained(json.loads(line), writing)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as stream:
            told = stream.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answer = json.loads(told) if told else {"status": status, "events": -1, "said": []}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
