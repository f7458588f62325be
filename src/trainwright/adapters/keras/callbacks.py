"""What fit's callbacks act on at the end of an epoch: the metrics they watch, and the metrics that are logged."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainwright.adapters.keras.calls import callbacks_of, catching, is_own
from trainwright.adapters.keras.custom_step import packed
from trainwright.adapters.keras.training import FitTraining
from trainwright.core.finding import Failure
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.keras.step_record import StepRecord
from trainwright.stages.evaluation import Watcher
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

_PURPOSES = {"EarlyStopping": "stop the training", "ReduceLROnPlateau": "lower the rate"}
# Differs by more than any minimum change set for a callback.
_FAR = 1e9
# Where a callback receives the logs that later callbacks receive too.
_HANDED_LOGS = ("on_epoch_end", "on_test_end")
# Operations that only read a dictionary.
_READING = ("get", "items", "keys", "values", "copy")


def measure_callbacks(fit: FitTraining) -> dict[str, Any]:
    """The metrics that the callbacks watch and the available ones, as fields of the evaluation's facts."""
    callbacks = callbacks_of(fit.fit_call.given)
    watching = [c for c in callbacks if _watches(c)]
    names = _logged(fit) if watching else ()
    if not names:
        return {}
    return {
        "watchers": tuple(_watcher(c, fit) for c in watching),
        "logged": () if any(map(may_add_to_logs, callbacks)) else names,
    }


def _watches(callback: Any) -> bool:
    """Whether one of Keras's own callbacks acts on a metric."""
    return (
        _is_of_keras(callback)
        and isinstance(getattr(callback, "monitor", None), str)
        and hasattr(callback, "monitor_op")
        and getattr(callback, "save_best_only", True)
    )


def _is_of_keras(callback: Any) -> bool:
    return type(callback).__module__.partition(".")[0] == version().package


def _watcher(callback: Any, fit: FitTraining) -> Watcher:
    kind, built = type(callback).__name__, fit.seen.callbacks.get(callback)
    greater, failure = _direction(callback, fit.model)
    purpose = "keep the best weights" if hasattr(callback, "save_best_only") else _PURPOSES.get(kind, "act")
    path = str(getattr(callback, "filepath", ""))
    taken = list(inspect.signature(type(callback)).parameters)
    return Watcher(
        kind=kind,
        purpose=purpose,
        metric=callback.monitor,
        position=taken.index("monitor"),
        in_file_name=re.search(f"{{{re.escape(callback.monitor)}[:}}]", path) is not None,
        mode_position=taken.index("mode") if "mode" in taken else None,
        greater=greater,
        usual=_usual_direction(callback, fit.model),
        failure=failure,
        where=built.place if built is not None else None,
    )


def _usual_direction(callback: Any, model: Any) -> bool | None:
    """Whether Keras treats a greater value of the metric as better, also for one of several outputs."""
    if not hasattr(callback, "_set_monitor_op"):  # tf_keras guesses it from the metric's name
        return None
    name = callback.monitor.removeprefix("val_")
    of_output = [name.removeprefix(f"{o}_") for o in getattr(model, "output_names", None) or ()]
    asked = (_direction(callback, model, mode="auto", monitor=n, monitor_op=None)[0] for n in (name, *of_output))
    return next((greater for greater in asked if greater is not None), None)


def _direction(callback: Any, model: Any, **settings: Any) -> tuple[bool | None, Failure | None]:
    """Whether a callback treats a greater value as better, and what it raises when it decides that."""
    copied = copy.copy(callback)
    vars(copied).update(settings)
    if copied.monitor_op is None:  # it is decided at the end of the first epoch
        copied.set_model(model)
        try:
            copied._set_monitor_op()
        except Exception as error:  # a metric whose direction Keras does not know
            return None, failure_of(error)
    return bool(tensors.to_numpy(keras.ops.convert_to_tensor(copied.monitor_op(_FAR, 0.0)))), None


def _logged(fit: FitTraining) -> tuple[str, ...]:
    """The names that a training step and an evaluation step log, as fit collects them; none if one raises."""
    held = fit.data.validation
    trained = _taken(fit, "train", fit.take(1, seed=0))
    if held is None or not trained:
        return trained
    tested = _taken(fit, "test", [fit.repaired(b) for b in held.pool(1)[:1]])
    return (*trained, *(f"val_{name}" for name in tested)) if tested else ()


def _taken(fit: FitTraining, kind: str, batches: Sequence[Any]) -> tuple[str, ...]:
    """The names that a step logs; none if there is no batch, or the step raises.

    Args:
        kind: train or test.
    """
    fit.model.run_eagerly = True
    silent, record = contextlib.redirect_stdout(io.StringIO()), StepRecord()
    logs: Any = None
    with silent, fit.observer(detail=False), catching(record):  # its errors are reported by other stages
        for batch in batches[:1]:
            logs = _logs(fit, kind, fit.tensors_of(batch))
    return tuple(_names(logs)) if isinstance(logs, Mapping) else ()


def _logs(fit: FitTraining, kind: str, data: tuple[Any, Any, Any]) -> Any:
    """The return value of the model's step; a user's own step gets its batch as fit passes it."""
    model = fit.model
    if not is_own(model, f"{kind}_step"):
        x, y, weight = data
        return getattr(model, f"{kind}_on_batch")(x, y, sample_weight=weight, return_dict=True)
    if kind == "train":
        return fit.own_step_of(model).run(data, StepRecord(), update=False)
    return model.test_step(packed(data))


def _names(logs: Mapping[str, Any]) -> Iterator[str]:
    """The names in logs as fit flattens them."""
    for name, value in logs.items():
        yield from _names(value) if isinstance(value, Mapping) else [name]


def may_add_to_logs(callback: Any) -> bool:
    """Whether a callback that is not Keras's may write to the logs that later callbacks see."""
    handed = (getattr(callback, name, None) for name in _HANDED_LOGS)
    return any(_may_write(f) for f in handed if not _is_kerass_function(f))


def _is_kerass_function(function: Any) -> bool:
    return function is None or str(getattr(function, "__module__", "")).partition(".")[0] == version().package


def _may_write(function: Any) -> bool:
    """Whether a function may do more with its last argument than read it; True if its source cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        name = list(inspect.signature(function).parameters)[-1]
    except (OSError, TypeError, ValueError, SyntaxError, IndexError):
        return True
    read = {id(node) for node in _only_read(tree)}
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and id(n) not in read
        for n in ast.walk(tree)
    )


def _only_read(tree: ast.AST) -> Iterator[ast.AST]:
    """The expressions whose value is only read, or only tested for truth."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            reads = isinstance(node.ctx, ast.Load) if isinstance(node, ast.Subscript) else node.attr in _READING
            yield from [node.value] * reads
        elif isinstance(node, ast.BoolOp):
            yield from node.values
        elif isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, (ast.If, ast.IfExp)):
            yield node.test
