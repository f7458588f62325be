"""Watches Keras: `fit`, `evaluate` and `predict`, weights that are saved and loaded, and trainings that
no `fit` runs: batches given one by one, optimizers, compiled functions, losses."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch.keras.fit import is_internal
from trainwright.rehearsal.watch.keras.loops import Loops, Stepping, is_noisy, norm_of
from trainwright.rehearsal.watch.keras.watch import KerasWatch
from trainwright.rehearsal.watch.keras.weights import fingerprint
from trainwright.seams.listening.doors import calling_frame, standing, watch_door

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
    recorder.on_end.append(watch.note_end)
    recorder.on_written.append(recorder.watching(watch.look_behind))


def finish_keras(recorder: Recorder) -> None:
    """Write what is found out after the run."""
    for watch, loops in _watches.pop(recorder, []):
        recorder.watching(loops.finish)()
        watch.finish()


def _arguments(signature: inspect.Signature, model: Any, args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    try:
        return signature.bind(model, *args, **kwargs)
    except TypeError:  # the call itself then says what is wrong
        return None


def _watch_fit(watch: KerasWatch, owner: Any) -> None:
    signature = inspect.signature(owner.fit)
    recorder = watch.recorder
    begin, end = recorder.watching(KerasWatch.begin_fit), recorder.watching(KerasWatch.end_fit)

    def fit(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = _arguments(signature, self, args, kwargs)
        run = begin(watch, self, bound.arguments, sys._getframe(1)) if bound is not None else None
        if run is None or bound is None:
            return go_on(self, *args, **kwargs)
        outer, recorder.keras_runs = recorder.keras_runs, True
        try:
            return go_on(*bound.args, **bound.kwargs)
        finally:
            recorder.keras_runs = outer
            end(watch, run)

    watch_door(owner, "fit", fit)


def _watch_evaluation(watch: KerasWatch, owner: Any, name: str) -> None:
    signature = inspect.signature(getattr(owner, name))
    recorder = watch.recorder
    note = recorder.watching(KerasWatch.evaluated)

    def passed(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = calling_frame()
        outer, recorder.keras_runs = recorder.keras_runs, True
        try:
            result = go_on(self, *args, **kwargs)
        finally:
            recorder.keras_runs = outer
        if not is_internal(frame) and not recorder.busy:
            bound = _arguments(signature, self, args, kwargs)
            if bound is not None:
                note(watch, self, dict(bound.arguments), result, frame, name == "evaluate")
        return result

    watch_door(owner, name, passed)


def _watch_files(watch: KerasWatch, owner: Any) -> None:
    recorder = watch.recorder
    saved, loaded = recorder.watching(KerasWatch.saved), recorder.watching(KerasWatch.loaded)
    known = recorder.watching(fingerprint)

    def save(how: str, go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        result = go_on(self, *args, **kwargs)
        frame = calling_frame()
        if how == "saved" or not is_internal(frame):
            saved(watch, self, args[0] if args else kwargs.get("filepath"), how, frame)
        return result

    def load(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = calling_frame()
        if is_internal(frame) or not getattr(self, "built", True):
            return go_on(self, *args, **kwargs)
        before = known(self)
        result = go_on(self, *args, **kwargs)
        if before is not None:
            loaded(watch, self, before, frame)
        return result

    for name, how in (("save", "saved"), ("save_weights", "saved"), ("get_weights", "copied")):
        watch_door(owner, name, functools.partial(save, how))
    for name in ("load_weights", "set_weights"):
        watch_door(owner, name, load)
    _watch_loading(watch)


def _watch_loading(watch: KerasWatch) -> None:
    """Models that are read from a file."""
    loaded = watch.recorder.watching(KerasWatch.loaded)

    def load_model(go_on: Any, *args: Any, **kwargs: Any) -> Any:
        model = go_on(*args, **kwargs)
        loaded(watch, model, 0.0, sys._getframe(1))
        return model

    watch_door(watch.keras.models, "load_model", load_model, also=[getattr(watch.keras, "saving", None)])


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

    def on_batch(trains: bool, go_on: Any, self: Any, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        if _is_still(loops):
            return go_on(self, x, y, *args, **kwargs)
        known = begin(self) if trains and getattr(self, "optimizer", None) is not None else None
        recorder.keras_runs = True
        try:
            result = go_on(self, x, y, *args, **kwargs)
        finally:
            recorder.keras_runs = False
        if known is not None:
            end(known, self, x, y, result)
        elif not trains:
            test(self, x, y)
        return result

    watch_door(owner, "train_on_batch", functools.partial(on_batch, True))
    watch_door(owner, "test_on_batch", functools.partial(on_batch, False))


def _watch_optimizers(loops: Loops) -> None:
    recorder, backend = loops.recorder, loops.watch.backend
    kind: Any = loops.watch.keras.optimizers.Optimizer
    name = next((n for n in ("apply", "apply_gradients") if hasattr(kind, n)), None)
    owner = next((k for k in kind.__mro__ if name in vars(k)), None)
    if name is None or owner is None:
        return

    def before(optimizer: Any, variables: list[Any]) -> Stepping:
        known: Stepping = Loops.stepping(loops, optimizer, None, variables)
        return known

    begin, end, traced = recorder.watching(before), recorder.watching(loops.stepped), recorder.watching(loops.traced)

    def note_norm(gradients: list[Any]) -> None:
        if recorder.is_due(recorder.record.updates + 1):
            loops.watch.fits[-1].norm = norm_of(gradients)

    in_fit = recorder.watching(note_norm)

    def apply(go_on: Any, self: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.busy or (recorder.keras_runs and (backend != "torch" or not loops.watch.fits)):
            return go_on(self, grads, *args, **kwargs)
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
            return go_on(self, grads, *args, **kwargs)
        if _is_traced(backend, gradients):
            if loops.running:
                with sys.modules["tensorflow"].init_scope():
                    known = begin(self, variables)
                    if known is not None:
                        traced(known)
            return go_on(self, grads, *args, **kwargs)
        known = begin(self, variables)
        result = go_on(self, grads, *args, **kwargs)
        if known is not None:
            end(known, gradients)
        return result

    watch_door(owner, name, apply)


def _watch_functions(loops: Loops) -> None:
    """TensorFlow's compiled functions: what they hold runs without Python."""
    import tensorflow as tf
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    called = loops.recorder.watching(loops.called)

    def tensors(args: Any, kwargs: Any) -> list[Any]:
        flat = tf.nest.flatten((args, kwargs), expand_composites=True)
        return [t for t in flat if tf.is_tensor(t) or isinstance(t, np.ndarray)]

    def call(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_still(loops) or not tf.executing_eagerly() or is_internal(calling_frame()):
            return go_on(self, *args, **kwargs)
        loops.running.append((self, calling_frame()))
        try:
            result = go_on(self, *args, **kwargs)
        finally:
            loops.running.pop()
        if self in loops.compiled:
            called(self, tensors(args, kwargs), result)
        return result

    watch_door(polymorphic_function.Function, "__call__", call)


def _watch_doors(loops: Loops) -> None:
    """Calls of models and losses by the script's own code."""
    noted = loops.recorder.watching(loops.loss_called)

    def answer(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_still(loops) or loops.depth or not args:
            return go_on(self, *args, **kwargs)
        loops.depth += 1
        try:
            result = go_on(self, *args, **kwargs)
        finally:
            loops.depth -= 1
        loops.recent.append((self, args[0], result, bool(kwargs.get("training")) and is_noisy(self)))
        return result

    def score(go_on: Any, self: Any, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        result = go_on(self, y_true, y_pred, *args, **kwargs)
        if not _is_still(loops) and loops.recent:
            noted(self, y_true, y_pred)
        return result

    with standing(loops.watch.calls):
        watch_door(loops.watch.keras.Model, "__call__", answer)
    watch_door(loops.watch.keras.losses.Loss, "__call__", score)


def _watch_metrics(loops: Loops) -> None:
    """Metrics that the script's own code gives labels and answers."""
    metrics = loops.watch.keras.metrics
    noted = loops.recorder.watching(loops.metric_called)

    def update_state(go_on: Any, self: Any, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_still(loops) and loops.recent:
            noted(y_true, y_pred)
        return go_on(self, y_true, y_pred, *args, **kwargs)

    for owner in {kind for kind in vars(metrics).values() if isinstance(kind, type)}:
        own = vars(owner).get("update_state")
        if (
            issubclass(owner, metrics.Metric)
            and own
            and list(inspect.signature(own).parameters)[1:3] == _LABELS_ANSWERS
        ):
            watch_door(owner, "update_state", update_state)


def _watch_tapes(loops: Loops) -> None:
    """Losses whose gradients the script asks for itself."""
    followed = loops.recorder.watching(loops.loss_followed)

    def gradient(go_on: Any, self: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_still(loops) and not loops.running:
            followed(target)
        return go_on(self, target, *args, **kwargs)

    watch_door(sys.modules["tensorflow"].GradientTape, "gradient", gradient)
