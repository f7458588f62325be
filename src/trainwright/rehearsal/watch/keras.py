"""Watches Keras: `fit`, `evaluate` and `predict`, weights that are saved and loaded, and trainings that
no `fit` runs: batches given one by one, optimizers, compiled functions, losses."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.keras_fit import is_internal
from trainwright.rehearsal.watch.keras_loops import Loops, Stepping, is_noisy, norm_of
from trainwright.rehearsal.watch.keras_watch import KerasWatch
from trainwright.rehearsal.watch.keras_weights import fingerprint

_watches: weakref.WeakKeyDictionary[Recorder, list[tuple[KerasWatch, Loops]]] = weakref.WeakKeyDictionary()
# A metric that compares the answers with labels takes these.
_LABELS_ANSWERS = ["y_true", "y_pred"]


def watch_keras(recorder: Recorder, keras: Any) -> None:
    """Watch a Keras that was just imported: `keras` or `tf_keras`."""
    watch = KerasWatch(recorder, keras)
    model: Any = keras.Model
    _watch_fit(watch, model)
    _watch_evaluation(watch, model, "evaluate")
    _watch_evaluation(watch, model, "predict")
    _watch_files(watch, model)
    _watches.setdefault(recorder, []).append((watch, _watch_loops(watch)))
    recorder.on_error.append(watch.note_end)
    recorder.on_written.append(recorder.watching(watch.look_behind))


def finish_keras(recorder: Recorder) -> None:
    """Write what is found out after the run."""
    for watch, loops in _watches.pop(recorder, []):
        recorder.watching(loops.finish)()
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
    _watch_loading(watch)
    owner.load_weights, owner.set_weights = loading(owner.load_weights), loading(owner.set_weights)


def _watch_loading(watch: KerasWatch) -> None:
    """Models that are read from a file."""
    original = watch.keras.models.load_model
    loaded = watch.recorder.watching(KerasWatch.loaded)

    @functools.wraps(original)
    def load_model(*args: Any, **kwargs: Any) -> Any:
        model = original(*args, **kwargs)
        loaded(watch, model, 0.0, sys._getframe(1))
        return model

    modules: list[Any] = [watch.keras.models, getattr(watch.keras, "saving", None)]
    for module in modules:
        if getattr(module, "load_model", None) is original:
            module.load_model = load_model


def _watch_loops(watch: KerasWatch) -> Loops:
    """Watch the trainings that no `fit` runs."""
    loops = Loops(watch)
    _watch_batches(loops, watch.keras.Model)
    _watch_optimizers(loops)
    if watch.backend == "tensorflow":
        _watch_functions(loops)
        _watch_tapes(loops)
    if watch.backend != "jax":
        _watch_doors(loops)
        _watch_metrics(loops)
    return loops


def _is_still(loops: Loops) -> bool:
    """Whether Keras or a watcher is at work itself."""
    return loops.recorder.busy or loops.recorder.keras_runs


def _is_traced(backend: str, tensors: Sequence[Any]) -> bool:
    if backend == "tensorflow":
        return not sys.modules["tensorflow"].executing_eagerly()
    return backend == "jax" and any("Tracer" in type(t).__name__ for t in tensors)


def _watch_batches(loops: Loops, owner: Any) -> None:
    recorder = loops.recorder

    def before(model: Any) -> Stepping:
        known: Stepping = Loops.stepping(loops, model.optimizer, model, None)
        return known

    def after(known: Stepping, model: Any, x: Any, y: Any, result: Any) -> None:
        value = result["loss"] if isinstance(result, dict) else np.ravel(result)[0]
        if recorder.is_due(recorder.record.updates + 1):
            recorder.add_loss(float(value))
            if y is not None:
                loops.keep(loops.kept_of(model, model.loss, True), x, y)
        loops.stepped(known)

    def tested(model: Any, x: Any, y: Any) -> None:
        if y is not None:
            loops.keep(loops.kept_of(model, model.loss, False), x, y)

    begin, end, test = recorder.watching(before), recorder.watching(after), recorder.watching(tested)

    def watching(name: str, trains: bool) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def on_batch(self: Any, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
            if _is_still(loops):
                return original(self, x, y, *args, **kwargs)
            known = begin(self) if trains and getattr(self, "optimizer", None) is not None else None
            recorder.keras_runs = True
            try:
                result = original(self, x, y, *args, **kwargs)
            finally:
                recorder.keras_runs = False
            if known is not None:
                end(known, self, x, y, result)
            elif not trains:
                test(self, x, y)
            return result

        setattr(owner, name, on_batch)

    watching("train_on_batch", True)
    watching("test_on_batch", False)


def _watch_optimizers(loops: Loops) -> None:
    recorder, backend = loops.recorder, loops.watch.backend
    kind: Any = loops.watch.keras.optimizers.Optimizer
    name = next((n for n in ("apply", "apply_gradients") if hasattr(kind, n)), None)
    owner = next((k for k in kind.__mro__ if name in vars(k)), None)
    if name is None or owner is None:
        return
    original = getattr(owner, name)

    def before(optimizer: Any, variables: list[Any]) -> Stepping:
        known: Stepping = Loops.stepping(loops, optimizer, None, variables)
        return known

    begin, end, traced = recorder.watching(before), recorder.watching(loops.stepped), recorder.watching(loops.traced)

    def note_norm(gradients: list[Any]) -> None:
        if recorder.is_due(recorder.record.updates + 1):
            loops.watch.fits[-1].norm = norm_of(gradients)

    in_fit = recorder.watching(note_norm)

    @functools.wraps(original)
    def apply(self: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.busy or (recorder.keras_runs and (backend != "torch" or not loops.watch.fits)):
            return original(self, grads, *args, **kwargs)
        if name == "apply_gradients":
            grads = list(grads)
            gradients, variables = [g for g, _ in grads], [v for _, v in grads]
        else:
            gradients = list(grads)
            given = args[0] if args else kwargs.get("trainable_variables")
            variables = list(given) if given is not None else list(self._trainable_variables)
            args, kwargs = ((variables,) if given is not None else ()), {}
            grads = gradients
        if recorder.keras_runs:
            in_fit(gradients)
            return original(self, grads, *args, **kwargs)
        if _is_traced(backend, gradients):
            if loops.running:
                with sys.modules["tensorflow"].init_scope():
                    known = begin(self, variables)
                    if known is not None:
                        traced(known)
            return original(self, grads, *args, **kwargs)
        known = begin(self, variables)
        result = original(self, grads, *args, **kwargs)
        if known is not None:
            end(known, gradients)
        return result

    setattr(owner, name, apply)


def _watch_functions(loops: Loops) -> None:
    """TensorFlow's compiled functions: what they hold runs without Python."""
    import tensorflow as tf
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    owner: Any = polymorphic_function.Function
    original = owner.__call__
    called = loops.recorder.watching(loops.called)

    def tensors(args: Any, kwargs: Any) -> list[Any]:
        flat = tf.nest.flatten((args, kwargs), expand_composites=True)
        return [t for t in flat if tf.is_tensor(t) or isinstance(t, np.ndarray)]

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_still(loops) or not tf.executing_eagerly() or is_internal(sys._getframe(1)):
            return original(self, *args, **kwargs)
        loops.running.append((self, sys._getframe(1)))
        try:
            result = original(self, *args, **kwargs)
        finally:
            loops.running.pop()
        if self in loops.compiled:
            called(self, tensors(args, kwargs), result)
        return result

    owner.__call__ = call


def _watch_doors(loops: Loops) -> None:
    """Calls of models and losses by the script's own code."""
    model: Any = loops.watch.keras.Model
    loss: Any = loops.watch.keras.losses.Loss
    call_model: Callable[..., Any] = model.__call__
    call_loss: Callable[..., Any] = loss.__call__
    noted = loops.recorder.watching(loops.loss_called)

    @functools.wraps(call_model)
    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_still(loops) or loops.depth or not args:
            return call_model(self, *args, **kwargs)
        loops.depth += 1
        try:
            result = call_model(self, *args, **kwargs)
        finally:
            loops.depth -= 1
        loops.recent.append((self, args[0], result, bool(kwargs.get("training")) and is_noisy(self)))
        return result

    @functools.wraps(call_loss)
    def score(self: Any, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        result = call_loss(self, y_true, y_pred, *args, **kwargs)
        if not _is_still(loops) and loops.recent:
            noted(self, y_true, y_pred)
        return result

    model.__call__, loss.__call__ = answer, score


def _watch_metrics(loops: Loops) -> None:
    """Metrics that the script's own code gives labels and answers."""
    metrics = loops.watch.keras.metrics
    noted = loops.recorder.watching(loops.metric_called)

    def watching(owner: Any) -> None:
        original = owner.update_state

        @functools.wraps(original)
        def update_state(self: Any, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
            if not _is_still(loops) and loops.recent:
                noted(y_true, y_pred)
            return original(self, y_true, y_pred, *args, **kwargs)

        owner.update_state = update_state

    for owner in {kind for kind in vars(metrics).values() if isinstance(kind, type)}:
        own = vars(owner).get("update_state")
        if (
            issubclass(owner, metrics.Metric)
            and own
            and list(inspect.signature(own).parameters)[1:3] == _LABELS_ANSWERS
        ):
            watching(owner)


def _watch_tapes(loops: Loops) -> None:
    """Losses whose gradients the script asks for itself."""
    tape: Any = sys.modules["tensorflow"].GradientTape
    original = tape.gradient
    followed = loops.recorder.watching(loops.loss_followed)

    @functools.wraps(original)
    def gradient(self: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_still(loops) and not loops.running:
            followed(target)
        return original(self, target, *args, **kwargs)

    tape.gradient = gradient
