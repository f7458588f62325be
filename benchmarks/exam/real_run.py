"""Run a program for real, to its end, and write what became of its training.

    python real_run.py SCRIPT OUT SEED [ARGS...]
    python real_run.py --serve MODULE...    imports the modules, then forks for each line of standard input: a JSON object
                                            with script, out, seed, arguments, folder and seconds; answers with a line

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

import ast
import contextlib
import functools
import importlib.util
import inspect
import io
import json
import math
import os
import re
import signal
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PRINTED = re.compile(r"([A-Za-z_]\w*)?[^\w\n-]{0,12}((?<![\w.])[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|nan\b|inf\b))")
_KEPT_SCORES = 4096  # calls of loss functions: the last quarter of more is still recent
_SMALL = 2_000_000  # values of an array that are counted for distinct ones


class Record:
    """What is seen of a run, in the order in which it happens."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.scored: dict[str, list[tuple[Any, ...]]] = {"train": [], "eval": []}
        self.reported: dict[str, float] = {}
        self.history: list[float] = []

    def outcome(self) -> dict[str, Any]:
        losses = self.history or self.losses
        return {
            "train_loss": _last_quarter_mean(losses),
            "train_score": _score(self.scored["train"]),
            "eval_score": _score(self.scored["eval"]),
            "reported": {k: v for k, v in self.reported.items() if isinstance(v, float)},
        }


def _last_quarter_mean(values: list[float]) -> float | None:
    last = values[-max(1, len(values) // 4) :]
    return sum(last) / len(last) if last else None


def _score(calls: list[tuple[Any, ...]]) -> float | None:
    """Accuracy of classes, or R2 of numbers, over the last quarter of calls; None where there were none.

    Each call is (kind, ...): ("classes", right, counted) or ("numbers", squared error, sum, sum of squares, counted).
    """
    last = calls[-max(1, len(calls) // 4) :]
    if not last:
        return None
    classes = [c for c in last if c[0] == "classes"]
    if len(classes) * 2 >= len(last):
        counted = sum(c[2] for c in classes)
        return sum(c[1] for c in classes) / counted if counted else None
    numbers = [c for c in last if c[0] == "numbers"]
    error, total, squares, counted = (sum(c[i] for c in numbers) for i in (1, 2, 3, 4))
    spread = squares - total * total / counted if counted else 0.0
    return 1 - error / spread if spread > 0 else None


def main(script: str, out: str, seed: int, arguments: list[str]) -> None:
    """Run `script` as `python script` would, and write its outcome."""
    record, names, raised = Record(), {}, None
    sys.argv[:] = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    _after_import("torch", lambda torch: (_watch_torch(torch, record), _move_torch(torch, seed)))
    _after_import("numpy", lambda numpy: _move_numpy(numpy, seed))
    _after_import("keras", lambda keras: _watch_keras(keras, record, seed))
    _after_import("transformers.trainer", lambda module: _watch_trainer(module, record))
    _after_import("lightning.pytorch", lambda module: _watch_lightning(module, record))
    _after_import("pytorch_lightning", lambda module: _watch_lightning(module, record))
    _move_random(seed)
    said = _Tee(sys.stdout)
    started = time.monotonic()
    with contextlib.redirect_stdout(said):
        try:
            _run_noting(script, names)
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


# What training does --------------------------------------------------------------------------------------------------

_LOSSES = {
    "cross_entropy": "classes",
    "nll_loss": "classes",
    "binary_cross_entropy": "binary",
    "binary_cross_entropy_with_logits": "logits",
    "multilabel_soft_margin_loss": "logits",
    "mse_loss": "numbers",
    "l1_loss": "numbers",
    "smooth_l1_loss": "numbers",
    "huber_loss": "numbers",
    "poisson_nll_loss": None,
}


def _watch_torch(torch: Any, record: Record) -> None:
    functional = torch.nn.functional
    for name, kind in _LOSSES.items():
        if kind:
            setattr(functional, name, _scoring(torch, getattr(functional, name), kind, record))

    def noting(loss: Any) -> None:
        tensors = loss if isinstance(loss, (tuple, list)) else [loss]
        with contextlib.suppress(Exception):
            record.losses.append(float(sum(t.detach().float().sum() for t in tensors)))

    tensor_backward, backward = torch.Tensor.backward, torch.autograd.backward

    @functools.wraps(tensor_backward)
    def of_tensor(self: Any, *args: Any, **kwargs: Any) -> Any:
        noting(self)
        return tensor_backward(self, *args, **kwargs)

    @functools.wraps(backward)
    def of_all(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if inspect.stack(0)[1].function != "backward":  # Tensor.backward has noted it
            noting(tensors)
        return backward(tensors, *args, **kwargs)

    torch.Tensor.backward, torch.autograd.backward = of_tensor, of_all


def _scoring(torch: Any, function: Any, kind: str, record: Record) -> Any:
    @functools.wraps(function)
    def scored(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(input, target, *args, **kwargs)
        with contextlib.suppress(Exception), torch.no_grad():
            calls = record.scored["train" if getattr(result, "requires_grad", False) else "eval"]
            calls.append(_agreement(torch, kind, input.detach(), target.detach(), kwargs))
            del calls[:-_KEPT_SCORES]
        return result

    return scored


def _agreement(torch: Any, kind: str, input: Any, target: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    if kind == "classes":
        guess = input.argmax(1) if input.dim() > 1 else input.argmax(0)
        target = target.argmax(1) if target.is_floating_point() else target
        counted = target != kwargs.get("ignore_index", -100)
        return "classes", int(((guess == target) & counted).sum()), int(counted.sum())
    if kind in ("binary", "logits"):
        yes = input > (0.5 if kind == "binary" else 0.0)
        return "classes", int((yes == (target > 0.5)).sum()), target.numel()
    input, target = torch.broadcast_tensors(input.double(), target.double())
    error = float(((input - target) ** 2).sum())
    return "numbers", error, float(target.sum()), float((target**2).sum()), target.numel()


def _watch_trainer(module: Any, record: Record) -> None:
    """Keep the last of each number in the log of a Trainer."""
    trainer = module.Trainer
    log = trainer.log

    @functools.wraps(log)
    def logged(self: Any, logs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        for key, value in logs.items():
            if isinstance(value, (int, float)) and "runtime" not in key and "per_second" not in key:
                record.reported[key] = float(value)
        return log(self, logs, *args, **kwargs)

    trainer.log = logged


def _watch_lightning(module: Any, record: Record) -> None:
    fit = module.Trainer.fit

    @functools.wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = fit(self, *args, **kwargs)
        for key, value in self.callback_metrics.items():
            with contextlib.suppress(Exception):
                record.reported[key] = float(value)
        return result

    module.Trainer.fit = fitted


def _watch_keras(keras: Any, record: Record, seed: int) -> None:
    keras.utils.set_random_seed(seed)
    keras.utils.set_random_seed = _moved(keras.utils.set_random_seed, seed)
    fit = keras.Model.fit

    @functools.wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        history = fit(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            record.history.extend(history.history.get("loss", ()))
            for key, values in history.history.items():
                record.reported[key] = float(values[-1])
        return history

    keras.Model.fit = fitted


# What its variables held ---------------------------------------------------------------------------------------------


class _Noting(ast.NodeTransformer):
    """Each function of the script notes its variables when it first returns; lines stay as they are."""

    def __init__(self) -> None:
        self._scope: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._scope += [node.name, "<locals>"]
        self.generic_visit(node)
        name = ".".join(self._scope[:-1])
        del self._scope[-2:]
        documented = ast.get_docstring(node, clean=False) is not None
        head, body = node.body[:documented], node.body[documented:]
        note = ast.parse(f"__noted__ is not None and __noted__({name!r}, locals())").body[0]
        if body:
            node.body = [*head, ast.Try(body=body, handlers=[], orelse=[], finalbody=[note])]
        return node


def _run_noting(script: str, names: dict[str, Any]) -> None:
    """Run the script as __main__, with the variables of its functions and of the module in `names`."""
    seen: set[str] = set()

    def noted(scope: str, values: dict[str, Any]) -> None:
        if scope not in seen:
            seen.add(scope)
            names.update({f"{scope}::{k}": s for k, v in values.items() if (s := _seen(v))})

    tree = ast.fix_missing_locations(_Noting().visit(ast.parse(Path(script).read_text(encoding="utf-8"))))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=script, __noted__=noted)
    sys.modules["__main__"] = module
    exec(compile(tree, script, "exec"), module.__dict__)
    names.update({f"::{k}": s for k, v in list(vars(module).items()) if (s := _seen(v))})


def _seen(value: Any) -> dict[str, Any] | None:
    """Kind, shape and type of a value that a fault could be planted in, or None."""
    with contextlib.suppress(Exception):
        kind = _kind(value)
        if kind in ("tensor", "array", "series"):
            array = value.detach().cpu().numpy() if kind == "tensor" else value
            flat = getattr(array, "values", array)
            counted = flat.size <= _SMALL and flat.dtype.kind in "iufb"
            import numpy

            distinct = len(numpy.unique(flat)) if counted else None
            finite = counted and flat.size and flat.dtype.kind in "iuf"
            low, high = (float(flat.min()), float(flat.max())) if finite else (None, None)
            bounds = (
                (low, high) if low is not None and math.isfinite(low) and high and math.isfinite(high) else (None, None)
            )
            return {
                "kind": kind,
                "shape": list(flat.shape),
                "type": str(flat.dtype),
                "distinct": distinct,
                "range": bounds,
            }
        if kind in ("frame", "rows"):
            columns = list(getattr(value, "columns", None) if kind == "frame" else value.column_names)
            return {"kind": kind, "shape": [len(value), len(columns)], "columns": [str(c) for c in columns]}
        if kind == "sets":
            return {"kind": kind, "columns": next(iter(value.values())).column_names, "sets": list(value)}
        if kind:
            length = len(value) if hasattr(value, "__len__") and kind != "model" else None
            return {"kind": kind, "shape": [length], "class": type(value).__name__}
    return None


def _kind(value: Any) -> str | None:
    bases = {f"{c.__module__.split('.')[0]}.{c.__name__}" for c in type(value).__mro__}
    table = {
        "torch.Tensor": "tensor",
        "numpy.ndarray": "array",
        "pandas.Series": "series",
        "pandas.DataFrame": "frame",
        "datasets.Dataset": "rows",
        "datasets.DatasetDict": "sets",
        "torch.DataLoader": "loader",
        "torch.Dataset": "dataset",
        "torch.Module": "model",
        "keras.Model": "model",
        "torch.Optimizer": "optimizer",
        "builtins.list": "list",
    }
    return next((kind for name, kind in table.items() if name in bases), None)


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
            main(request["script"], request["out"], request["seed"], request["arguments"])
        print(_waited(child, request["seconds"]), flush=True)


def _waited(child: int, seconds: float) -> str:
    """End the run after its time, with all that it started."""
    until = time.monotonic() + seconds
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
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
