"""JAX: gradients that a script takes, the functions that it compiles, and what both were called with.

Values exist at the outermost call only, be it of a gradient or of a compiled function. Its arguments are kept, as arrays do
not change, and looked at once the run is over (`rehearsal/watch/jax/looks.py`).
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import wrapt

from trainwright.rehearsal.record import Training
from trainwright.rehearsal.recorder import Recorder, asks_for_rows
from trainwright.rehearsal.watch.jax.looks import HeldCall, Looks
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.source.places import nearest_place, user_frame

# Bytes of arguments and results that are kept of one function; its calls that are kept at most, and those of an evaluation.
MOST_BYTES, MOST_CALLS, MOST_EVALUATED = 200_000_000, 200, 64
# Functions whose calls are kept.
MOST_FUNCTIONS = 200


@dataclass(eq=False)
class Function:
    """What the script calls with values: a gradient, or a function that it compiles."""

    trains: bool
    """Whether gradients are taken in it."""
    has_static: bool = False
    """Whether some of its arguments are no arrays."""
    rounds: int = 1
    """How often a call of it takes the gradient: as often as loops around it go round; 0: it is not known."""
    made: int = 0
    """Calls of it."""
    calls: list[HeldCall] = field(default_factory=list)
    """Of an evaluation: those since the last update."""


class JaxWatch:
    """Follows the outermost calls."""

    def __init__(self, recorder: Recorder, jax: Any) -> None:
        self.recorder, self.jax = recorder, jax
        self.looks = Looks(recorder, jax)
        self._under_way: Function | None = None
        self._rounds = 1
        """Of the loops that are being traced, together."""
        self._training: Training | None = None
        self._functions: dict[tuple[int, bool], Function] = {}
        self._kept: list[Function] = []
        self._chosen: deque[tuple[Any, Any]] = deque(maxlen=4)
        """The last choices of highest scores, and the scores."""
        self._compared: list[tuple[HeldCall, Any, Any, Any]] = []
        """Since the last update: scores whose choice was compared, the labels and the rows."""
        self._leaves, self._thread = jax.tree_util.tree_leaves, threading.get_ident()
        self._with_loss = jax.value_and_grad
        self._note: Callable[..., None] = recorder.watching(self._keep)

    def _is_off(self, values: Any) -> bool:
        """Whether what happens now is not looked at: Keras trains, which is known, or there are no values yet."""
        if self.recorder.busy or "keras" in sys.modules or threading.get_ident() != self._thread:
            return True
        tracer = self.jax.core.Tracer
        return self._under_way is not None or any(isinstance(leaf, tracer) for leaf in self._leaves(values))

    def _call(self, function: Function, of: Any, again: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """Pass a call on, and note it where it is an outermost one; `again` does the same with tracers."""
        if self.looks.is_looking:
            return again(*args, **kwargs)
        if self._under_way is not None and function.trains and not self._under_way.trains:
            self._under_way.trains, self._under_way.rounds = True, self._rounds * function.rounds
        if self._is_off((args, kwargs)):
            return original(*args, **kwargs)
        self._under_way = function
        try:
            result = original(*args, **kwargs)
        finally:
            self._under_way = None
        self._note(function, of, again, args, kwargs, result)
        if function.trains:  # what it calls may end the run: no watcher's own
            self.recorder.record.updates += max(function.rounds, 1) - 1
            self.recorder.end_update()
        return result

    def _keep(self, function: Function, of: Any, again: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Keep a call; of many updates, each other one."""
        update, calls, function.made = self.recorder.record.updates, function.calls, function.made + 1
        if function not in self._kept and len(self._kept) < MOST_FUNCTIONS:
            self._kept.append(function)
        if not function.trains and calls and calls[-1].update != update:
            calls.clear()
        is_due = self.recorder.is_due(function.made - 1) if function.trains else len(calls) < MOST_EVALUATED
        if function not in self._kept or not is_due:
            return
        calls.append(
            HeldCall(again, of, function.has_static, args, kwargs, result, update, nearest_place(sys._getframe(1)))
        )
        size = sum(getattr(leaf, "nbytes", 0) for leaf in self._leaves((args, kwargs, result)))
        if function.trains and len(calls) > max(2, min(MOST_CALLS, MOST_BYTES // max(1, size))):
            del calls[1::2]
        if function.trains and self._training is None:
            self._training = self.recorder.begin_training(self.recorder.next_training(calls[-1].where))
            self._watch_choices(result)

    def _watch_choices(self, result: Any) -> None:
        """Watch choices and comparisons of values, whose class is known once there are some."""
        kinds: Any = map(type, self._leaves(result))
        kind = next((kind for kind in kinds if kind.__module__.startswith("jax")), None)
        if kind is not None:
            for owner in (self.jax.numpy, kind):
                self._watch_result(owner, "argmax", self._choose)
            self._watch_result(kind, "__eq__", self._compare)

    def _watch_result(self, owner: Any, name: str, note: Callable[..., Any]) -> None:
        note = self.recorder.watching(note)

        def passed_on(go_on: Any, *args: Any, **kwargs: Any) -> Any:
            result = go_on(*args, **kwargs)
            if args and not self._is_off(args):
                note(result, *args)
            return result

        watch_door(owner, name, passed_on)

    def _choose(self, choice: Any, scores: Any, *_: Any) -> None:
        """The highest scores are chosen."""
        if not _are_labels(scores):
            self._chosen.append((choice, scores))

    def _compare(self, _: Any, one: Any, other: Any) -> None:
        """`choice == labels`, outside of what is compiled: the rows are what a compiled function made the scores of, or
        the only ones beside them."""
        sides = ((one, other), (other, one))
        pair = next(((scores, b) for a, b in sides for choice, scores in self._chosen if choice is a), None)
        frame, update = user_frame(sys._getframe(1)), self.recorder.record.updates
        if pair is None or not one.ndim or one.shape != np.shape(other) or frame is None:
            return
        scores, labels = pair
        beside = [v for v in list(frame.f_locals.values()) if isinstance(v, (np.ndarray, type(one)))]
        for held in (held for function in self._kept for held in function.calls):
            if any(leaf is scores for leaf in self._leaves(held.result)):
                beside = self._leaves((held.args, held.kwargs))
        alike = {id(v): v for v in beside if np.ndim(v) > 1 and len(v) == len(one) and v is not scores}
        rows = [v for v in alike.values() if not _are_labels(v)]
        if self._compared and self._compared[-1][0].update != update:
            self._compared.clear()
        if len(rows) == 1 and len(self._compared) < MOST_EVALUATED:
            held = HeldCall(self._compare, None, False, (), {}, None, update, nearest_place(frame))
            self._compared.append((held, scores, labels, rows[0]))

    def finish(self) -> None:
        """Look at what was kept: first at the updates, which say what the weights are."""
        for trains in (True, False):
            functions = (one.calls for one in self._kept if one.trains == trains)
            self.looks.look([held for calls in functions for held in (*calls[:1], *calls[:0:-1])], trains)
        for compared in self._compared:
            self.looks.keep_choice(*compared)
        self.recorder.record.losses.sort(key=lambda one: one[0])
        if self._training is not None and len(self.recorder.record.losses) > 1:
            self._training.has_moved = self.recorder.have_moved(self.looks.weights, self.looks.most_rows)
        if any(one.trains and not one.rounds for one in self._kept):
            told = (
                "Gradients are taken in a compiled loop of unknown length: an update stands for a call of its function."
            )
            self.recorder.record.remarks += (told,)

    def _function_of(self, thing: Any, trains: bool) -> Function:
        """The same one however often it is compiled or differentiated."""
        return self._functions.setdefault((self.recorder.number_of(thing), trains), Function(trains))

    def watch_gradients(self, name: str) -> None:
        """Watch `jax.grad` or `jax.value_and_grad`; traced again, the first is the second, which tells the loss."""
        with_loss = self._with_loss

        def passed_on(
            go_on: Any, fun: Any, argnums: Any = 0, has_aux: bool = False, *options: Any, **named: Any
        ) -> Any:
            taken = go_on(fun, argnums, has_aux, *options, **named)
            function = self._function_of(getattr(fun, "__code__", fun), trains=True)

            def again(*args: Any, **kwargs: Any) -> Any:
                made = with_loss(fun, argnums, has_aux, *options, **named)
                value, gradient = self.looks.meet(made, argnums, args, kwargs)
                return (value, gradient) if name != "grad" else (gradient, value[1]) if has_aux else gradient

            @functools.wraps(taken)
            def asked(*args: Any, **kwargs: Any) -> Any:
                if "keras" not in sys.modules:  # whose own trainings are known
                    self.recorder.begin_unseen()
                if asks_for_rows(argnums, args, self._leaves):
                    return taken(*args, **kwargs)
                return self._call(function, (id(fun), str(argnums)), again, taken, args, kwargs)

            return asked

        watch_door(self.jax, name, passed_on)

    def watch_loop(self, name: str) -> None:
        """Watch a loop of `jax.lax`, which is traced: how often it goes round is known unless its bounds are computed."""
        names = list(inspect.signature(getattr(self.jax.lax, name)).parameters)

        def passed_on(go_on: Any, *args: Any, **kwargs: Any) -> Any:
            given, outer = dict(zip(names, args), **kwargs), self._rounds
            lower, upper = given.get("lower"), given.get("upper")
            lengths = [given.get("length"), *(n for x in self._leaves(given.get("xs")) for n in np.shape(x)[:1])]
            lengths += [upper - lower] if isinstance(lower, int) and isinstance(upper, int) else []
            self._rounds *= next((length for length in lengths if isinstance(length, int)), 0)
            try:
                return go_on(*args, **kwargs)
            finally:
                self._rounds = outer

        watch_door(self.jax.lax, name, passed_on)

    def watch_compiling(self) -> None:
        """Watch `jax.jit`, and the functions that it makes."""

        def passed_on(go_on: Any, fun: Any = None, **named: Any) -> Any:
            if fun is None:
                return functools.partial(passed_on, go_on, **named)
            compiled, function = go_on(fun, **named), self._function_of(fun, trains=False)
            function.has_static = any("static" in name for name in named)

            def called(_: Any, instance: Any, args: Any, kwargs: Any) -> Any:
                args = args if instance is None else (instance, *args)
                return self._call(function, id(fun), fun, compiled, args, kwargs)

            return wrapt.FunctionWrapper(compiled, called)  # in all else it is the function

        watch_door(self.jax, "jit", passed_on)


def _are_labels(rows: Any) -> bool:
    """Whether these may be one-hot labels."""
    return bool(np.isin(np.asarray(rows), (0, 1)).all())


def watch_jax(recorder: Recorder, jax: Any) -> None:
    """Watch `jax.grad`, `jax.value_and_grad`, `jax.jit`, and the loops of `jax.lax`."""
    watch = JaxWatch(recorder, jax)
    for name in ("scan", "fori_loop", "while_loop"):
        watch.watch_loop(name)
    watch.watch_gradients("grad")
    watch.watch_gradients("value_and_grad")
    watch.watch_compiling()
    recorder.on_finish.append(recorder.watching(watch.finish))
