"""JAX: gradients that a script takes, the functions that it compiles, and what both were called with.

Values exist at the outermost call only, be it of a gradient or of a compiled function. Its arguments are kept, as arrays do
not change, and looked at once the run is over (`jax_looks.py`).
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import wrapt

from trainwright.rehearsal.record import Training
from trainwright.rehearsal.recorder import FIRST_TRAINING_CALLS, Recorder
from trainwright.rehearsal.watch.jax_looks import Gradient, Held, Looks, is_label
from trainwright.rehearsal.watch.places import place
from trainwright.seams.source.places import user_frame

# Bytes of arguments and results that are kept of one function; its last calls that are kept at most, and of an evaluation.
MOST_BYTES, MOST_LAST, MOST_EVALUATED = 200_000_000, 100, 64
# Functions whose calls are kept.
MOST_FUNCTIONS = 200


@dataclass(eq=False)
class Function:
    """What the script calls with values: a gradient, or a function that it compiles."""

    donates: bool = False
    has_static: bool = False
    takes_gradients: bool = False
    first: list[Held] = field(default_factory=list)
    last: deque[Held] = field(default_factory=deque)
    """Of an evaluation: the calls since the last update."""

    def keep(self, held: Held, size: int) -> None:
        """Keep a call that makes an update."""
        if self.last.maxlen is None:
            self.last = deque(maxlen=max(2, min(MOST_LAST, MOST_BYTES // max(1, size))))
        if len(self.first) < min(FIRST_TRAINING_CALLS, self.last.maxlen or 0):
            self.first.append(held)
        else:
            self.last.append(held)


class JaxWatch:
    """Follows the outermost calls."""

    def __init__(self, recorder: Recorder, jax: Any) -> None:
        self.recorder, self.jax = recorder, jax
        self.looks = Looks(recorder, jax)
        self.under_way: Function | None = None
        self.training: Training | None = None
        self._known: list[Function] = []
        self._chosen: deque[tuple[Any, Any]] = deque(maxlen=4)
        """The last choices of highest scores, and the scores."""
        self._compared: list[tuple[Held, list[tuple[Any, Any]], list[Any]]] = []
        """Choices that were compared since the last update: with what, and arrays of as many rows beside them."""
        self._tracer, self._leaves = jax.core.Tracer, jax.tree_util.tree_leaves
        self._note: Callable[..., None] = recorder.watching(self._keep)
        self._copy: Callable[[Any], Any] = recorder.watching(self._copied)
        self._thread = threading.get_ident()

    def is_off(self, values: Any) -> bool:
        """Whether what happens now is not looked at: Keras trains, which is known, or there are no values yet."""
        if self.recorder.busy or "keras" in sys.modules or threading.get_ident() != self._thread:
            return True
        return self.under_way is not None or any(isinstance(leaf, self._tracer) for leaf in self._leaves(values))

    def _is_due(self, function: Function) -> bool:
        """Whether a call is kept."""
        update, last = self.recorder.record.updates, function.last
        if function.takes_gradients:
            return self.recorder.is_due(update)
        return len(last) < MOST_EVALUATED or last[-1].update != update

    def call(
        self, function: Function, python: Callable[..., Any], original: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """Pass a call on, and note it where it is an outermost one.

        Args:
            python: what it computes, to be called with tracers.
        """
        if self.is_off((args, kwargs)):
            return original(*args, **kwargs)
        kept = self._copy((args, kwargs)) if function.donates and self._is_due(function) else (args, kwargs)
        self.under_way = function
        try:
            result = original(*args, **kwargs)
        finally:
            self.under_way = None
        if kept is not None and self._is_due(function):
            self._note(function, python, *kept, result)
        if function.takes_gradients:  # what it calls may end the run: no watcher's own
            self.recorder.end_update()
        return result

    def _copied(self, values: Any) -> Any:
        """Copies of values whose memory the call gives away."""
        return self.jax.tree_util.tree_map(lambda leaf: leaf.copy() if hasattr(leaf, "nbytes") else leaf, values)

    def _keep(self, function: Function, python: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> None:
        update = self.recorder.record.updates
        result = self._copied(result) if function.donates else result
        held = Held(python, args, kwargs, result, update, place(sys._getframe(1)), function.has_static)
        if not (function.first or function.last) and len(self._known) < MOST_FUNCTIONS:
            self._known.append(function)
        if not function.takes_gradients:
            if function.last and function.last[-1].update != update:
                function.last.clear()
            function.last.append(held)
            return
        if self.training is None:
            number = len(self.recorder.record.trainings) + 1
            self.training = Training(number=number, kind="loop", begins=update, where=held.where)
            self.recorder.begin_training(self.training)
            self._watch_choices(held)
        leaves = self._leaves((args, kwargs, result))
        function.keep(held, sum(getattr(leaf, "nbytes", 0) for leaf in leaves))

    def _watch_choices(self, held: Held) -> None:
        """Watch choices and comparisons of values, whose class is known once there are some."""
        leaves = self._leaves(held.result)
        kind = next((type(leaf) for leaf in leaves if type(leaf).__module__.startswith("jax")), None)
        if kind is not None:
            numpy, choose, compare = self.jax.numpy, *map(self.recorder.watching, (self.choose, self.compare))
            numpy.argmax, kind.argmax = (self._within(one, choose, True) for one in (numpy.argmax, kind.argmax))
            kind.__eq__ = self._within(kind.__eq__, compare, False)

    def _within(self, original: Callable[..., Any], note: Callable[..., Any], has_result: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        def passed_on(*args: Any, **kwargs: Any) -> Any:
            is_watched = bool(args) and not self.is_off(args)
            if is_watched and not has_result:
                note(*args)
            result = original(*args, **kwargs)
            if is_watched and has_result:
                note(args[0], result)
            return result

        return passed_on

    def choose(self, scores: Any, choice: Any) -> None:
        """The highest scores are chosen."""
        self._chosen.append((choice, scores))

    def compare(self, one: Any, other: Any) -> None:
        """`choice == labels`, outside of what is compiled."""
        sides = ((one, other), (other, one))
        pairs = [(scores, b) for a, b in sides for choice, scores in self._chosen if choice is a]
        update, frame = self.recorder.record.updates, user_frame(sys._getframe(1))
        if not pairs or not one.ndim or one.shape != np.shape(other) or frame is None:
            return
        if self._compared and self._compared[-1][0].update != update:
            self._compared.clear()
        if len(self._compared) < MOST_EVALUATED:
            held = Held(self.compare, (), {}, None, update, place(frame), False)
            arrays = (v for v in list(frame.f_locals.values()) if isinstance(v, (np.ndarray, type(one))))
            beside = [v for v in arrays if v.shape[:1] == one.shape[:1] and v is not one and v is not other]
            self._compared.append((held, pairs, beside))

    def _rows_of(self, scores: Any, labels: Any, beside: list[Any]) -> list[Any]:
        """What the scores were computed from: what a compiled function was given, or the only rows beside them."""
        tree = self.jax.tree_util
        for held in (held for function in self._known for held in function.last):
            if any(leaf is scores for leaf in tree.tree_leaves(held.result)):
                beside = tree.tree_leaves((held.args, held.kwargs))
        rows = {id(one): one for one in beside if np.shape(one)[:1] == labels.shape[:1] and one is not scores}
        found = [one for one in rows.values() if not is_label(np.asarray(one), np.asarray(labels))]
        return found if len(found) == 1 else []

    def _finish_choices(self) -> None:
        for held, pairs, beside in self._compared:
            pair = next(((s, y) for s, y in pairs if not is_label(np.asarray(s), np.asarray(y))), None)
            if pair is not None and (rows := self._rows_of(*pair, beside)):
                self.looks.keep_choice(held, *pair, rows)

    def finish(self) -> None:
        """Look at what was kept: first at the updates, which say what the weights are."""
        for function in sorted(self._known, key=lambda one: not one.takes_gradients):
            calls = [*function.first[:1], *reversed(function.last), *function.first[1:]]
            (self.looks.train if function.takes_gradients else self.looks.evaluate)(calls)
        if self.training is not None:
            self._finish_choices()
        self.recorder.record.losses.sort(key=lambda one: one[0])
        if self.training is not None:
            self.training.has_moved = self.looks.has_moved()


class Compiled(wrapt.CallableObjectProxy):  # type: ignore[type-arg]
    """A compiled function whose outermost calls are noted; in all else it is the function."""

    def __init__(self, compiled: Any, watch: JaxWatch, function: Function, python: Callable[..., Any]) -> None:
        super().__init__(compiled)
        self._self_watch, self._self_function, self._self_python = watch, function, python

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        watch, python = self._self_watch, self._self_python
        if watch.looks.is_looking:
            return python(*args, **kwargs)
        return watch.call(self._self_function, python, self.__wrapped__, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


def watch_jax(recorder: Recorder, jax: Any) -> None:
    """Watch `jax.grad`, `jax.value_and_grad` and `jax.jit`."""
    watch = JaxWatch(recorder, jax)
    for name in ("grad", "value_and_grad"):
        setattr(jax, name, _watched_gradient(watch, getattr(jax, name)))
    jax.jit = _watched_compiler(watch, jax.jit)
    recorder.on_finish.append(recorder.watching(watch.finish))


def _watched_gradient(watch: JaxWatch, original: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, Function] = {}  # by their code: a script may differentiate a new function at each step

    @functools.wraps(original)
    def passed_on(fun: Any, argnums: Any = 0, *args: Any, **kwargs: Any) -> Any:
        taken = original(fun, argnums, *args, **kwargs)
        function = known.setdefault(getattr(fun, "__code__", None) or fun, Function(takes_gradients=True))
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        gradient = Gradient(original.__name__, fun, numbers, taken, watch.looks)

        @functools.wraps(taken)
        def asked(*args: Any, **kwargs: Any) -> Any:
            if watch.looks.is_looking:
                return gradient(*args, **kwargs)
            if watch.under_way is not None:
                watch.under_way.takes_gradients = True
                return taken(*args, **kwargs)
            return watch.call(function, gradient, taken, args, kwargs)

        return asked

    return passed_on


def _watched_compiler(watch: JaxWatch, original: Callable[..., Any]) -> Callable[..., Any]:
    known: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()

    @functools.wraps(original)
    def passed_on(*args: Any, **kwargs: Any) -> Any:
        fun = args[0] if args else kwargs.get("fun")
        compiled = original(*args, **kwargs)
        if not callable(fun):
            return compiled if fun is not None else lambda fun: Compiled(compiled(fun), watch, of(fun, kwargs), fun)
        return Compiled(compiled, watch, of(fun, kwargs), fun)

    def of(fun: Any, options: dict[str, Any]) -> Function:
        """One for each function, which a script may compile again and again."""
        if fun not in known:
            donates, has_static = (any(word in name for name in options) for word in ("donate", "static"))
            known[fun] = Function(donates, has_static)
        return known[fun]

    return passed_on
