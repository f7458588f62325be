"""Run a program for real, to its end, and write what became of its training.

    python real_run.py SCRIPT OUT SEED [ARGS...]
    python real_run.py --serve MODULE...    imports the modules, then forks for each line of standard input: a JSON object
                                            with script, out, seed, arguments and folder; answers with a line

It is the exam's reference and knows nothing of Trainwright. The program's seeds are moved by SEED, so that several runs
show how much its results vary. OUT (JSON) has:

- `raised`: the type, message and line in the script of the exception that ended the run, or null;
- `train_loss`: what `backward` was called on, the mean over the last quarter of the calls (Keras: of the epochs);
- `train_score`, `eval_score`: how well the scores that the loss functions received agreed with the targets, over the last
  quarter of the training and evaluation calls: accuracy for classes, R2 for numbers. They do not depend on the loss's scale;
- `reported`: the numbers that the program itself ended with: Trainer's and Lightning's metrics, Keras's history, and the
  last number that it printed after each word;
- `names`: what each variable of the script held at the end of its function or module: kind, shape, type, distinct values;
- `seconds`.
"""

import contextlib
import functools
import importlib.util
import io
import json
import math
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recorded import Record, watch_keras, watch_lightning, watch_torch, watch_trainer
from variables import run_noting

del sys.path[0]  # this folder: the program has its own

_PRINTED = re.compile(r"([A-Za-z_]\w*)?[^\w\n-]{0,12}((?<![\w.])[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|nan\b|inf\b))")
SECONDS = 60  # of processor time: a program that takes longer says nothing


def main(script: str, out: str, seed: int, arguments: list[str]) -> None:
    """Run `script` as `python script` would, and write its outcome."""
    record, names, raised = Record(), {}, None
    sys.argv[:] = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    _after_import("torch", lambda torch: (watch_torch(torch, record), _move_torch(torch, seed)))
    _after_import("numpy", lambda numpy: _move_numpy(numpy, seed))
    _after_import("keras", lambda keras: (watch_keras(keras, record), _move_keras(keras, seed)))
    _after_import("transformers.trainer", lambda module: watch_trainer(module, record))
    _after_import("lightning.pytorch", lambda module: watch_lightning(module, record))
    _after_import("pytorch_lightning", lambda module: watch_lightning(module, record))
    _move_random(seed)
    said = _Tee(sys.stdout)
    started = time.monotonic()
    with contextlib.redirect_stdout(said):
        try:
            run_noting(script, names)
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raised = _told(ended, script)
        except BaseException as error:
            traceback.print_exc()
            raised = _told(error, script)
    seconds = time.monotonic() - started
    lines = [line for line in said.text().splitlines() if _PRINTED.search(line)]
    printed = {f"printed {word}": float(n) for line in lines[-20:] for word, n in _PRINTED.findall(line)}
    outcome = record.outcome()
    outcome["reported"] = printed | outcome["reported"]
    text = json.dumps({"raised": raised, **outcome, "names": names, "seconds": seconds})
    Path(out).write_text(text, encoding="utf-8")
    os._exit(0)  # threads and workers of the program do not matter any more


class _Tee(io.TextIOBase):
    """Passes everything on, and keeps the end."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._kept = stream, ""

    def write(self, text: str) -> int:
        self._kept = (self._kept + text)[-20_000:]
        return int(self._stream.write(text))

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def text(self) -> str:
        return self._kept


def _told(error: BaseException, script: str) -> dict[str, Any]:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == script]
    return {"type": type(error).__name__, "message": str(error)[:300], "line": frames[-1].lineno if frames else None}


def _after_import(name: str, then: Callable[[Any], Any]) -> None:
    """Call `then` with the module once it has been imported, now or later."""
    if name in sys.modules:
        then(sys.modules[name])
        return

    class Finder:
        asking = False

        def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
            if fullname != name or self.asking:
                return None
            self.asking = True
            try:
                spec = importlib.util.find_spec(name)
            finally:
                self.asking = False
            if spec is None or spec.loader is None:
                return spec
            run = spec.loader.exec_module

            def exec_module(module: Any) -> None:  # not every search is followed by an import
                run(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)  # type: ignore[arg-type]
                    then(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
            return spec

    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]


# Seeds ---------------------------------------------------------------------------------------------------------------


def _moved(function: Any, by: int) -> Any:
    """`function`, whose first argument is a seed, with that seed moved."""

    @functools.wraps(function)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int):
            args = (args[0] + 7919 * by, *args[1:])
        elif isinstance(kwargs.get("seed"), int):
            kwargs["seed"] += 7919 * by
        return function(*args, **kwargs)

    return seeded


def _move_random(by: int) -> None:
    import random

    random.seed(by)
    random.seed = _moved(random.seed, by)


def _move_numpy(numpy: Any, by: int) -> None:
    numpy.random.seed(by)
    numpy.random.seed = _moved(numpy.random.seed, by)


def _move_torch(torch: Any, by: int) -> None:
    torch.manual_seed(by)
    torch.manual_seed = _moved(torch.manual_seed, by)


def _move_keras(keras: Any, by: int) -> None:
    keras.utils.set_random_seed(by)
    keras.utils.set_random_seed = _moved(keras.utils.set_random_seed, by)


def serve(modules: list[str]) -> None:
    """Fork a run for each request, so that a run does not pay for its imports."""
    for name in modules:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            silent = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(silent, descriptor)
            os.chdir(request["folder"])
            limit_seconds()
            main(request["script"], request["out"], request["seed"], request["arguments"])
        print(_waited(child), flush=True)


def limit_seconds() -> None:
    """Let the system end this process after its processor time, which a busy machine does not change."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used) + SECONDS, math.ceil(used) + SECONDS + 5))


def _waited(child: int) -> str:
    """End the run, with all that it started, where it sleeps and uses no processor."""
    until = time.monotonic() + 5 * SECONDS
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return "ended"
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "too long"


if __name__ == "__main__" and sys.argv[1] == "--serve":
    serve(sys.argv[2:])
elif __name__ == "__main__":
    limit_seconds()
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
