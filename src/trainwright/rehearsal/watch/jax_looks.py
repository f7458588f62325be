"""What JAX functions were called with, looked at once the run is over: answers beside labels, and whether weights moved."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Place
from trainwright.rehearsal.record import Answers, Kind, Output, Pass, Source
from trainwright.rehearsal.recorder import MOST_ROWS, Recorder
from trainwright.rehearsal.watch.jax_trail import Meeting, Trail
from trainwright.rehearsal.watch.keras_losses import Compared, Expected, compare
from trainwright.rehearsal.watch.keras_rows import inputs_of, keys_of, spread

# Seconds in which no further function is looked at.
MOST_SECONDS = 10.0
# Functions of one code, and forms of their arguments, each of which is compiled.
MOST_FORMS = 24
# Of a set that was trained on, at least this share of the rows is met, few as the updates are that are looked at.
PART = 0.02
# Values of each tensor of weights by which it is told whether they moved.
FOLLOWED = 256
# By so much, relative to its largest value, what is computed again may differ.
ALIKE = 1e-2


@dataclass(frozen=True)
class Gradient:
    """A function that is differentiated, and by which of its arguments; to be called with tracers."""

    name: str
    fun: Callable[..., Any]
    argnums: tuple[int, ...]
    taken: Callable[..., Any] = field(compare=False)
    looks: Looks = field(compare=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.looks.meet(self, args, kwargs)
        self.looks.is_looking = False  # gradients within it are not met by themselves
        try:
            return self.taken(*args, **kwargs)
        finally:
            self.looks.is_looking = True


@dataclass(eq=False)
class Held:
    """A call with its values."""

    python: Callable[..., Any]
    """What it computes, to be called with tracers."""
    args: Any
    kwargs: Any
    result: Any
    update: int
    where: Place | None
    has_static: bool


@dataclass
class _Seen:
    """What a traced call shows: the meetings in it, and for each answers, labels and inputs."""

    meetings: list[Meeting]
    values: list[tuple[Any, Any, list[Any]]]
    loss: Any
    weights: list[Any]


class Looks:
    """Traces functions again, with what they were called with."""

    def __init__(self, recorder: Recorder, jax: Any) -> None:
        self._recorder, self._jax = recorder, jax
        self.is_looking = False
        """Whether gradients are met, and compiled functions are traced as they are written."""
        self._met: list[_Seen] = []
        self._trace_of: Any = None
        """What traces the call that is looked at."""
        self._shapes: set[tuple[Any, ...]] = set()
        """The shapes of weights, in the order in which they are passed."""
        self._weights: list[Any] = []
        self._most_rows = 0
        self._until: float | None = None

    def train(self, calls: list[Held]) -> None:
        """Look at calls that make updates."""
        self._look(calls, True)

    def evaluate(self, calls: list[Held]) -> None:
        """Look at calls that do not, if they are given weights."""
        leaves = self._jax.tree_util.tree_leaves((calls[0].args, calls[0].kwargs)) if calls else []
        if self._places_of_weights(leaves):
            self._look(calls, False)

    def keep_choice(self, held: Held, scores: Any, labels: Any, rows: list[Any]) -> None:
        """Keep scores whose choice was compared with labels."""
        seen = _Seen([Meeting("chosen", 0, 0, ())], [(scores, labels, rows)], None, [np.array([held.update])])
        self._keep(held, seen, False)

    def meet(self, gradient: Gradient, args: Any, kwargs: Any) -> None:
        """A gradient is taken in what is looked at."""
        sizes = [len(self._jax.tree_util.tree_leaves(one)) for one in args]
        chosen = {place for n in gradient.argnums for place in range(sum(sizes[:n]), sum(sizes[: n + 1]))}
        leaves = self._jax.tree_util.tree_leaves((args, kwargs))
        self._shapes.add(tuple(np.shape(leaves[place]) for place in sorted(chosen)))
        if all(
            getattr(leaf, "_trace", self._trace_of) is self._trace_of for leaf in leaves
        ):  # none of a loop's or vmap's
            self._gather(gradient.fun, args, kwargs, chosen, is_loss=True)

    def has_moved(self) -> bool | None:
        """Whether the weights were other ones at a later update; None: it is not known, as where no row came twice."""
        if len(self._weights) < 2:
            return None
        first = self._weights[0]
        if any(len(one) != len(first) or not np.array_equal(one, first, equal_nan=True) for one in self._weights):
            return True
        times = self._recorder.record.trained_keys
        comes_again = len(times) > self._most_rows and max(times.values(), default=0) > 1
        return False if comes_again else None

    def _places_of_weights(self, leaves: Sequence[Any]) -> set[int]:
        shapes = [np.shape(leaf) for leaf in leaves]
        found: set[int] = set()
        for form in self._shapes:
            for at in range(len(shapes) - len(form) + 1):
                if tuple(shapes[at : at + len(form)]) == form:
                    found |= set(range(at, at + len(form)))
        return found

    def _gather(self, fun: Callable[..., Any], args: Any, kwargs: Any, chosen: set[int], is_loss: bool) -> None:
        """Note where answers and labels meet in a function."""
        tree = self._jax.tree_util
        leaves, structure = tree.tree_flatten((args, kwargs))
        arrays = [place for place, leaf in enumerate(leaves) if hasattr(leaf, "shape")]

        def called(*values: Any) -> Any:
            filled = list(leaves)
            for place, value in zip(arrays, values, strict=True):
                filled[place] = value
            again, named = tree.tree_unflatten(structure, filled)
            return fun(*again, **named)

        before, self.is_looking = self.is_looking, False
        closed = self._jax.make_jaxpr(called)(*(leaves[place] for place in arrays))
        self.is_looking, trail = before, Trail()
        given = [trail.add(one) for one in (*closed.consts, *(leaves[place] for place in arrays))]
        trail.weights = frozenset(given[len(closed.consts) + n] for n, place in enumerate(arrays) if place in chosen)
        for place in trail.weights:
            trail.sources[place] = frozenset({place})
        results = trail.follow(closed.jaxpr, given)
        meetings = list(trail.meetings(results[:1] if is_loss else results))
        values = [
            (*(trail.values[v] for v in (m.answer, m.target)), [trail.values[v] for v in m.inputs]) for m in meetings
        ]
        weights = [_some(trail.values[place]) for place in sorted(trail.weights)]
        self._met.append(_Seen(meetings, values, trail.values[results[0]] if is_loss else None, weights))

    def _look(self, calls: list[Held], trains: bool) -> None:
        """Trace the calls, and keep what they show if they give what they gave."""
        traced: dict[Any, tuple[Callable[..., Any], list[_Seen]]] = {}
        self._until = self._until or time.process_time() + MOST_SECONDS
        for held in calls:
            leaves, structure = self._jax.tree_util.tree_flatten((held.args, held.kwargs))
            if any(leaf.is_deleted() for leaf in leaves if hasattr(leaf, "is_deleted")):
                continue
            arrays = [n for n, leaf in enumerate(leaves) if hasattr(leaf, "shape") or _is_number(leaf, held.has_static)]
            form = held.python, structure, tuple(_form(leaf, n in arrays) for n, leaf in enumerate(leaves))
            if form not in traced:
                if len(traced) >= MOST_FORMS or time.process_time() > self._until:
                    continue
                traced[form] = self._trace(held.python, leaves, structure, arrays, trains)
            function, met = traced[form]
            shown, result = function([leaves[n] for n in arrays])
            if self._is_alike(result, held.result):
                for seen, values in zip(met, shown, strict=True):
                    self._keep(held, replace(seen, **values), trains)

    def _trace(
        self, python: Callable[..., Any], leaves: list[Any], structure: Any, arrays: list[int], trains: bool
    ) -> tuple[Callable[..., Any], list[_Seen]]:
        kept: list[_Seen] = []
        leaves = list(leaves)

        def traced(values: list[Any]) -> Any:
            for place, value in zip(arrays, values, strict=True):
                leaves[place] = value
            args, kwargs = self._jax.tree_util.tree_unflatten(structure, leaves)
            self._met, self.is_looking = [], trains
            self._trace_of = next((trace for v in values if (trace := getattr(v, "_trace", None)) is not None), None)
            try:
                result = python(*args, **kwargs)
                if not trains:
                    chosen = self._places_of_weights(self._jax.tree_util.tree_leaves((args, kwargs)))
                    self._gather(python, args, kwargs, chosen, is_loss=False)
            finally:
                self.is_looking = False
            kept[:] = [replace(one, values=[], loss=None, weights=[]) for one in self._met]
            return [{"values": o.values, "loss": o.loss, "weights": o.weights} for o in self._met], self._floats(result)

        return self._jax.jit(traced), kept

    def _floats(self, result: Any) -> list[Any]:
        numpy = self._jax.numpy
        leaves = [leaf for leaf in self._jax.tree_util.tree_leaves(result) if hasattr(leaf, "dtype")]
        return [leaf for leaf in leaves if numpy.issubdtype(leaf.dtype, numpy.floating)]

    def _is_alike(self, result: list[Any], before: Any) -> bool:
        """Whether a call that was traced again gives what it gave: it may use what has changed since."""
        known = self._floats(before)
        pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(result, known, strict=False)]
        return len(result) == len(known) and all(
            np.allclose(
                a, b, rtol=ALIKE, atol=ALIKE * np.max(np.abs(b), initial=0.0, where=np.isfinite(b)), equal_nan=True
            )
            for a, b in pairs
        )

    def _keep(self, held: Held, seen: _Seen, trains: bool) -> None:
        if trains:
            self._recorder.record.losses.append((held.update, float(seen.loss)))
        met: Counter[tuple[Kind, int]] = Counter()
        weights = np.concatenate([np.asarray(one, np.float64) for one in seen.weights])
        model, made = self._recorder.number_of(self), None
        if not trains and seen.meetings:
            passed = Pass(number=0, update=held.update, model=model, is_trained=True, weights=float(weights.sum()))
            passed.where = held.where
            made = self._recorder.begin_pass(passed).number
        elif trains:
            self._weights.append(weights)
        for found, inputs, source in _compare(seen):
            output = Output(found.kind, found.width, met[found.kind, found.width])
            met[found.kind, found.width] += 1
            single = found.kept is not None and bool(inputs)
            kept = [one[found.kept] for one in inputs] if single else []
            answers = Answers(
                output=output,
                update=held.update,
                trains=trains,
                labels=found.labels,
                guesses=found.guesses,
                log_losses=found.log_losses,
                certainties=found.certainties,
                values=found.values,
                keys=keys_of(kept) if single else None,
                inputs=inputs_of(kept, reads_tokens=True) if single else None,
                total=len(found.labels),
                model=model,
                evaluation=made,
                source=source,
                loss=float(seen.loss) if trains else None,
                per_row=1 if found.of_rows is None else max(1, found.of_rows.shape[1]),
            )
            if trains:
                self._most_rows = max(self._most_rows, len(found.labels))
                self._recorder.count_labels(output, found.labels)
            else:
                self._join_trained(answers)
            self._recorder.add_answers(answers)

    def _join_trained(self, answers: Answers) -> None:
        """Of a set of which some rows are known to be trained on, all are: not all updates were looked at."""
        record, keys = self._recorder.record, [] if answers.keys is None else answers.keys.tolist()
        if (
            keys
            and sum(key in record.trained_keys for key in keys) > PART * len(keys)
            and len(record.losses) < record.updates
        ):
            for key in keys:
                record.trained_keys.setdefault(key, 1)


def is_label(one: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Whether these are the labels, by number or one-hot."""
    if one.ndim == labels.ndim + 1 and one.shape[-1] > 1 and np.isin(one, (0, 1)).all():
        one = one.argmax(-1)
    return one.shape == labels.shape and np.array_equal(one, labels)


def _some(weights: Any) -> Any:
    """Some of a tensor's values."""
    return weights.reshape(-1)[:: max(1, weights.size // FOLLOWED)]


def _is_number(leaf: Any, has_static: bool) -> bool:
    return type(leaf) in (int, float) and not has_static


def _form(leaf: Any, is_array: bool) -> Any:
    if is_array:
        return np.shape(leaf), getattr(leaf, "dtype", type(leaf))
    return leaf if isinstance(leaf, Hashable) else id(leaf)


def _compare(seen: _Seen) -> Iterator[tuple[Compared, list[NDArray[Any]], Source]]:
    """Answers beside labels, in the form of the record, with the inputs of their rows."""
    arrays = [
        (m.form, np.asarray(a), np.asarray(t), inputs)
        for m, (a, t, inputs) in zip(seen.meetings, seen.values, strict=True)
    ]
    known: list[Compared] = []
    weighed = [(a, t) for form, a, t, _ in arrays if form == "weighed"]
    for form, answer, target, inputs in arrays:
        other = next((a for a, t in weighed if _are_halves(answer, a, target, t)), None) if form == "weighed" else None
        read = _read(form, answer, target, other is not None)
        if read is None:
            continue
        if other is not None:
            weighed = []  # the other half says the same
        at = spread(len(answer), MOST_ROWS)
        found = compare(read[0], read[1][at], read[2][at], None, MOST_ROWS)
        if found is None or not len(found.labels) or any(_are_same(found, one) for one in known):
            continue
        known.append(found)
        source = Source.COMPARISON if form in _COMPARED else Source.DIFFERENCE if form == "numbers" else Source.LOSS
        yield found, [np.asarray(one)[at] for one in inputs], source


def _are_same(one: Compared, other: Compared) -> bool:
    """Whether these answers were told already: a loss and an accuracy are of the same ones."""
    mine, theirs = (found.guesses if found.values is None else found.values for found in (one, other))
    return (one.kind, one.width) == (other.kind, other.width) and np.array_equal(mine, theirs)  # type: ignore[arg-type]


_COMPARED = ("chosen", "binary", "logits")


def _are_halves(answer: NDArray[Any], other: NDArray[Any], target: NDArray[Any], of_other: NDArray[Any]) -> bool:
    """Whether they are the logarithms of yes and of no, each multiplied with its label."""
    if answer.shape != other.shape:
        return False
    is_whole = np.allclose(np.exp(answer) + np.exp(other), 1, atol=ALIKE)
    return is_whole and np.allclose(np.abs(target) + np.abs(of_other), 1, atol=ALIKE)


def _read(
    form: str, answer: NDArray[Any], target: NDArray[Any], is_half: bool
) -> tuple[Expected, NDArray[Any], NDArray[Any]] | None:
    """What the answers are, themselves and their labels."""
    if is_half:
        return Expected(kind=Kind.BINARY), np.exp(answer), np.abs(target)
    if form == "numbers":
        return Expected(kind=Kind.NUMBERS), answer, target
    if form in ("binary", "logits"):
        return Expected(kind=Kind.BINARY, from_logits=form == "logits"), answer, target
    if answer.ndim < 2:
        return None
    are_shares = bool(answer.min() >= 0) and np.allclose(answer.sum(-1), 1, atol=ALIKE)
    expected = Expected(kind=Kind.CLASSES, from_logits=not are_shares)
    if form != "weighed":
        labels = target[..., -1] if form == "picked" else target
        return (expected, answer, labels.reshape(answer.shape[:-1])) if labels.size == answer[..., 0].size else None
    shares = np.abs(target)
    is_one_of_several = answer.shape[-1] > 1 and np.allclose(shares.sum(-1), 1) and np.isin(shares, (0, 1)).all()
    return (expected, answer, shares) if is_one_of_several else None
