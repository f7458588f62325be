"""Watches Keras: `fit`, `evaluate` and `predict`, weights that are saved and loaded, and loops of the script's own."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any

from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.keras_fit import is_internal
from trainwright.rehearsal.watch.keras_watch import KerasWatch
from trainwright.rehearsal.watch.keras_weights import fingerprint

_watches: weakref.WeakKeyDictionary[Recorder, list[KerasWatch]] = weakref.WeakKeyDictionary()


def watch_keras(recorder: Recorder, keras: Any) -> None:
    """Watch a Keras that was just imported: `keras` or `tf_keras`."""
    watch = KerasWatch(recorder, keras)
    _watches.setdefault(recorder, []).append(watch)
    model: Any = keras.Model
    _watch_fit(watch, model)
    _watch_evaluation(watch, model, "evaluate")
    _watch_evaluation(watch, model, "predict")
    _watch_files(watch, model)


def finish_keras(recorder: Recorder) -> None:
    """Write what is found out after the run."""
    for watch in _watches.pop(recorder, []):
        watch.finish()


def _arguments(function: Callable[..., Any], model: Any, args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    try:
        return inspect.signature(function).bind(model, *args, **kwargs)
    except TypeError:  # the call itself then says what is wrong
        return None


def _watch_fit(watch: KerasWatch, owner: Any) -> None:
    original = owner.fit
    recorder = watch.recorder
    begin, end = recorder.watching(KerasWatch.begin_fit), recorder.watching(KerasWatch.end_fit)

    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = _arguments(original, self, args, kwargs)
        run = begin(watch, self, bound.arguments, sys._getframe(1)) if bound is not None else None
        if run is None or bound is None:
            return original(self, *args, **kwargs)
        outer, recorder.keras_runs = recorder.keras_runs, True
        try:
            return original(*bound.args, **bound.kwargs)
        finally:
            recorder.keras_runs = outer
            end(watch, run)

    owner.fit = fit


def _watch_evaluation(watch: KerasWatch, owner: Any, name: str) -> None:
    original = getattr(owner, name)
    recorder = watch.recorder
    note = recorder.watching(KerasWatch.evaluated)

    @functools.wraps(original)
    def passed(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        outer, recorder.keras_runs = recorder.keras_runs, True
        try:
            result = original(self, *args, **kwargs)
        finally:
            recorder.keras_runs = outer
        if not is_internal(frame) and not recorder.busy:
            bound = _arguments(original, self, args, kwargs)
            if bound is not None:
                note(watch, self, dict(bound.arguments), result, frame, name == "evaluate")
        return result

    setattr(owner, name, passed)


def _watch_files(watch: KerasWatch, owner: Any) -> None:
    recorder = watch.recorder
    saved, loaded = recorder.watching(KerasWatch.saved), recorder.watching(KerasWatch.loaded)
    known = recorder.watching(fingerprint)

    def saving(original: Any, how: str) -> Any:
        @functools.wraps(original)
        def save(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            frame = sys._getframe(1)
            if how == "saved" or not is_internal(frame):
                saved(watch, self, args[0] if args else kwargs.get("filepath"), how, frame)
            return result

        return save

    def loading(original: Any) -> Any:
        @functools.wraps(original)
        def load(self: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if is_internal(frame) or not getattr(self, "built", True):
                return original(self, *args, **kwargs)
            before = known(self)
            result = original(self, *args, **kwargs)
            if before is not None:
                loaded(watch, self, before, frame)
            return result

        return load

    owner.save, owner.save_weights = saving(owner.save, "saved"), saving(owner.save_weights, "saved")
    owner.get_weights = saving(owner.get_weights, "copied")
    owner.load_weights, owner.set_weights = loading(owner.load_weights), loading(owner.set_weights)
