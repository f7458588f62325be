"""What fit's callbacks act on at the end of an epoch: the metrics they watch, and the metrics that are logged."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any

from trainwright.adapters.keras.calls import callbacks_of
from trainwright.adapters.keras.training import FitTraining
from trainwright.core.finding import Failure
from trainwright.seams.failures.blame import failure_of
from trainwright.stages.evaluation import Watcher
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

_PURPOSES = {"EarlyStopping": "stop the training", "ReduceLROnPlateau": "lower the rate"}
# Differs by more than any minimum change set for a callback.
_FAR = 1e9


def measure_callbacks(fit: FitTraining) -> dict[str, Any]:
    """The metrics that the callbacks watch and the available ones, as fields of the evaluation's facts."""
    watching = [c for c in callbacks_of(fit.fit_call.given) if _watches(c)]
    if not watching or not fit.logged_names:
        return {}
    return {"watchers": tuple(_watcher(c, fit) for c in watching), "logged": fit.logged_names}


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
