"""Functions of sklearn.metrics: the numbers that they return, and the labels that they are given."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from trainwright.rehearsal.record import Answers, LabelKind, Output, PairSource
from trainwright.rehearsal.recorder import MOST_ROWS, Recorder, spread
from trainwright.rehearsal.watch.guessing import Guesses
from trainwright.seams.listening.doors import put_in, watch_door

# Functions whose second argument is the choice of a class, a score of yes, or a number.
_METRICS = {
    "accuracy_score": "classes",
    "balanced_accuracy_score": "classes",
    "f1_score": "classes",
    "precision_score": "classes",
    "recall_score": "classes",
    "matthews_corrcoef": "classes",
    "cohen_kappa_score": "classes",
    "confusion_matrix": "classes",
    "classification_report": "classes",
    "roc_auc_score": "binary",
    "average_precision_score": "binary",
    "log_loss": "",
    "r2_score": "numbers",
    "mean_squared_error": "numbers",
    "root_mean_squared_error": "numbers",
    "mean_absolute_error": "numbers",
}


def watch_sklearn(recorder: Recorder, module: Any) -> None:
    """Look at the functions of `sklearn.metrics`."""
    depth = [0]  # metrics call each other
    fitted, guesses = _watch_fits(recorder), Guesses(recorder)
    for name, form in _METRICS.items():
        if hasattr(module, name):
            _watch_metric(recorder, module, name, form, depth, fitted, guesses)


def _watch_fits(recorder: Recorder) -> set[int]:
    """The updates after which a predictor of sklearn's own is fitted, filled as the script runs."""
    fitted: set[int] = set()
    base: Any = sys.modules["sklearn.base"].BaseEstimator

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(type(self), "predict") and type(self).__module__.startswith("sklearn."):
            fitted.add(recorder.record.updates)
        return go_on(self, *args, **kwargs)

    watch_door(base, "_validate_params", passed_on)  # each estimator's fit begins with it
    return fitted


def _watch_metric(
    recorder: Recorder, module: Any, name: str, form: str, depth: list[int], fitted: set[int], guesses: Guesses
) -> None:
    original = getattr(module, name)
    note = recorder.watching(functools.partial(_note, recorder, name, form, fitted))
    keep = recorder.watching(functools.partial(_keep, recorder, original, name, guesses))

    def passed_on(go_on: Any, *args: Any, **kwargs: Any) -> Any:
        depth[0] += 1
        try:
            result = go_on(*args, **kwargs)
        finally:
            depth[0] -= 1
        if not depth[0] and not recorder.busy:
            note(result, *args, **kwargs)
            if recorder.record.updates not in fitted:
                keep(result, *args, **kwargs)
        return result

    scoring = sys.modules.get("sklearn.metrics._scorer")
    watch_door(module, name, passed_on, also=(sys.modules[original.__module__], scoring))
    for scorer in getattr(scoring, "_SCORERS", {}).values():  # what `scoring="accuracy"` names
        if scorer._score_func is original:
            put_in(scorer, "_score_func", getattr(module, name))


def _keep(
    recorder: Recorder,
    original: Callable[..., Any],
    name: str,
    guesses: Guesses,
    result: Any,
    *args: Any,
    **kwargs: Any,
) -> None:
    """Keep a call of a metric that gave one number, to ask what guessing gives."""
    labels = np.asarray(args[0] if args else kwargs["y_true"])
    key = next((k for k in ("y_pred", "y_score", "y_prob", "y_proba") if k in kwargs), "")
    if not isinstance(result, float | np.floating) or (len(args) < 2 and not key):
        return
    given = np.array(kwargs[key] if key else args[1])

    def ask(predictions: Any) -> dict[str, float]:
        placed = {**kwargs, key: predictions} if key else kwargs
        return {
            name: float(
                original(*args[: 1 if key else 0], *([] if key else [labels, predictions]), *args[2:], **placed)
            )
        }

    guesses.keep(name, given, labels, ask, 0.0)


def _note(recorder: Recorder, name: str, form: str, fitted: set[int], result: Any, *args: Any, **kwargs: Any) -> None:
    if recorder.record.updates in fitted:
        return  # of an estimator beside the model: a baseline, or a probe of what it has learned
    if isinstance(result, float | np.floating):
        recorder.add_number(name, float(result), "returned")
    labels = np.asarray(args[0] if args else kwargs["y_true"])
    given = args[1] if len(args) > 1 else kwargs.get("y_pred", kwargs.get("y_score"))
    guesses = np.asarray(given)
    if (
        not form
        or not labels.size
        or labels.shape != guesses.shape
        or labels.dtype.kind not in "biuf"
        or labels.ndim > 2
    ):
        return
    made = recorder.record.passes[-1] if recorder.record.passes else None
    at = spread(len(labels), MOST_ROWS)
    output, values = _read(form, labels[at], guesses[at])
    if output is None:
        return
    recent = made is not None and made.update == recorder.record.updates
    recorder.add_answers(
        Answers(
            output=output,
            update=recorder.record.updates,
            trains=False,
            total=len(labels),
            evaluation=made.number if made is not None and recent else None,
            model=made.model if made is not None and recent else 0,
            data=made.data if made is not None and recent else 0,
            source=PairSource.METRIC,
            **values,
        )
    )


def _read(form: str, labels: Any, guesses: Any) -> tuple[Output | None, dict[str, Any]]:
    wide_labels = labels.reshape(len(labels), -1).astype(np.float64)
    wide = guesses.reshape(len(guesses), -1).astype(np.float64)
    if form == "classes" and labels.ndim == 1:
        if (labels.dtype.kind == "f" and (labels != labels.round()).any()) or guesses.min() < 0 or labels.min() < 0:
            return None, {}
        width = int(max(labels.max(), guesses.max())) + 1
        values = {"labels": labels.astype(np.int64), "guesses": guesses.astype(np.int64)}
        return Output(LabelKind.CLASSES, max(2, width)), values
    if form == "binary" and (wide.min() < 0 or wide.max() > 1):
        return None, {}
    kind = LabelKind.NUMBERS if form == "numbers" else LabelKind.BINARY
    return Output(kind, wide.shape[1]), {"labels": wide_labels, "values": wide}
