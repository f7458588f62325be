"""What JAX functions were called with, looked at once the run is over: they are traced to see where answers of weights meet labels,
and whether weights moved."""

from __future__ import annotations

import contextlib
import functools
import io
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Place
from trainwright.rehearsal.record import Answers, LabelKind, Output, PairSource, Pass
from trainwright.rehearsal.recorder import MOST_ROWS, Recorder, spread
from trainwright.rehearsal.watch.labelled import LabelledOutputs, compare, inputs_of, keys_of

# Seconds in which updates are looked at, and evaluations.
MOST_SECONDS = 10.0
# Of a set that was trained on, at least this share of the rows is met, few as the updates are that are looked at.
PART = 0.02
# Values of each tensor of weights by which it is told whether they moved.
FOLLOWED = 256
# By so much, relative to its largest value, what is computed again may differ.
ALIKE = 1e-2
# Operations that leave the values as they are.
_SAME = {"convert_element_type", "reshape", "squeeze", "broadcast_in_dim", "copy", "stop_gradient"}
_FORMS = {"sub": "numbers", "mul": "weighed", "gather": "picked", "eq": "chosen"}


@dataclass(eq=False)
class HeldCall:
    """A call with its values."""

    python: Callable[..., Any]
    """What it computes, to be called with tracers."""
    of: Any
    """What it is a call of: calls of the same are traced once."""
    has_static: bool
    args: Any
    kwargs: Any
    result: Any
    update: int
    where: Place | None


class Looks:
    """Traces calls again, and finds the answers beside labels in them."""

    def __init__(self, recorder: Recorder, jax: Any) -> None:
        self._recorder, self._jax, self._leaves = recorder, jax, jax.tree_util.tree_leaves
        self.is_looking = False
        """Whether gradients are met, and compiled functions run as they are written."""
        self._met: list[tuple[list[_Meeting], list[Any], list[Any]]] = []
        """Of the call that is traced: what met, the loss, and some values of the weights."""
        self._trace: Any = None
        self._traced: dict[Any, Callable[..., Any]] = {}
        self._shapes: set[tuple[Any, ...]] = set()
        """The shapes of weights, in the order in which they are passed."""
        self.weights: set[bytes] = set()
        self.most_rows = 0
        with contextlib.suppress(ValueError):  # another run in this process has registered it
            jax.tree_util.register_dataclass(_Meeting, ["answer", "target", "inputs"], ["form"])

    def look(self, calls: Iterable[HeldCall], trains: bool) -> None:
        """Look at calls, and keep what they show if they give what they gave: what they use may have changed since."""
        until = time.process_time() + MOST_SECONDS
        for held in calls:
            leaves = self._leaves((held.args, held.kwargs, held.result))
            is_gone = any(leaf.is_deleted() for leaf in leaves if hasattr(leaf, "is_deleted"))
            if is_gone or time.process_time() > until:
                continue
            shown, results = self._make_again(held, trains)
            if _are_alike(results, self._floats(held.result)):
                for meetings, loss, weights in shown:
                    some = np.concatenate([np.asarray(one, np.float64) for one in weights])
                    self._keep(held, meetings, float(loss[0]) if trains else None, some)

    def _make_again(self, held: HeldCall, trains: bool) -> Any:
        """Trace a call, if none of its form was, and make it."""
        leaves, structure = self._jax.tree_util.tree_flatten((held.args, held.kwargs))
        kinds = () if held.has_static else (int, float)
        arrays = {place: leaf for place, leaf in enumerate(leaves) if hasattr(leaf, "shape") or type(leaf) in kinds}
        others = tuple(
            leaf if isinstance(leaf, Hashable) else id(leaf) for place, leaf in enumerate(leaves) if place not in arrays
        )

        def traced(arrays: dict[int, Any]) -> Any:
            filled = {**dict(enumerate(leaves)), **arrays}
            args, kwargs = self._jax.tree_util.tree_unflatten(structure, list(filled.values()))
            self._trace = next((one._trace for one in arrays.values()), None)
            self._met, self.is_looking = [], True
            with contextlib.redirect_stdout(io.StringIO()):
                try:
                    result = held.python(*args, **kwargs) if trains else self._evaluate(held.python, args, kwargs)
                finally:
                    self.is_looking = False
            return self._met, self._floats(result)

        return self._traced.setdefault((held.of, structure, others), self._jax.jit(traced))(arrays)

    def meet(self, taken: Callable[..., Any], argnums: Any, args: Any, kwargs: Any) -> Any:
        """A gradient is taken in what is looked at: of weights, unless it is within a loop or another gradient."""
        if any(getattr(leaf, "_trace", self._trace) is not self._trace for leaf in self._leaves((args, kwargs))):
            return taken(*args, **kwargs)
        weights = self._leaves([args[n] for n in ((argnums,) if isinstance(argnums, int) else argnums)])
        self._shapes.add(tuple(map(np.shape, weights)))
        return self._follow(weights, taken, args, kwargs, is_loss=True)

    def _evaluate(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Look at a call that is given weights; its result."""
        leaves = self._leaves((args, kwargs))
        parts = (leaves[at : at + len(form)] for form in self._shapes for at in range(len(leaves)))
        weights = [leaf for part in parts if tuple(map(np.shape, part)) in self._shapes for leaf in part]
        return self._follow(weights, function, args, kwargs, is_loss=False) if weights else None

    def _follow(self, weights: list[Any], function: Callable[..., Any], args: Any, kwargs: Any, is_loss: bool) -> Any:
        """Call a function, and note what meets on the way to its results, or to the loss, which is the first one."""
        trail = _Trail(weights)
        with trail.following():
            result = function(*args, **kwargs)
        results = self._leaves(result)
        some = [one.reshape(-1)[:: max(1, one.size // FOLLOWED)] for one in weights]
        self._met.append((trail.meetings(results[:1] if is_loss else results), results[:1], some))
        return result

    def _floats(self, result: Any) -> list[Any]:
        return [leaf for leaf in self._leaves(result) if str(getattr(leaf, "dtype", "")).startswith("float")]

    def keep_choice(self, held: HeldCall, scores: Any, labels: Any, rows: Any) -> None:
        """Keep scores whose choice was compared with labels."""
        self._keep(held, [_Meeting("chosen", scores, labels, [rows])], None, np.array([held.update]))

    def _keep(self, held: HeldCall, meetings: list[_Meeting], loss: float | None, weights: NDArray[Any]) -> None:
        recorder, met, made = self._recorder, Counter[tuple[LabelKind, int]](), None
        model, trains = recorder.number_of(self), loss is not None
        if loss is not None:
            recorder.add_loss(loss, held.update)
            self.weights.add(weights.tobytes())
        elif meetings:
            passed = Pass(number=0, update=held.update, model=model, is_trained=True, weights=float(weights.sum()))
            passed.where = held.where
            made = recorder.begin_pass(passed).number
        for found, inputs, source in _compare(meetings):
            output = Output(found.kind, found.width, met[found.kind, found.width])
            met[found.kind, found.width] += 1
            rows = [one[found.kept] for one in inputs] if found.kept is not None else []
            answers = Answers(
                output=output,
                update=held.update,
                trains=trains,
                **found.arrays(),
                keys=keys_of(rows) if rows else None,
                inputs=inputs_of(rows, reads_tokens=True) if rows else None,
                total=len(found.labels),
                model=model,
                evaluation=made,
                source=source,
                loss=loss,
            )
            if trains:
                self.most_rows = max(self.most_rows, len(found.labels))
                recorder.count_labels(output, found.labels)
            elif answers.keys is not None:
                self._join_trained(answers.keys.tolist())
            recorder.add_answers(answers)

    def _join_trained(self, keys: list[int]) -> None:
        """Of a set of which some rows are known to be trained on, all are: not all updates were looked at."""
        record = self._recorder.record
        is_met = sum(key in record.trained_keys for key in keys) > PART * len(keys)
        if is_met and len(record.losses) < record.updates:
            record.trained_keys.update({key: 1 for key in keys if key not in record.trained_keys})


def _are_alike(results: list[Any], before: list[Any]) -> bool:
    def is_alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
        largest = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
        return one.shape == other.shape and np.allclose(one, other, ALIKE, ALIKE * largest, equal_nan=True)

    pairs = zip(*([np.asarray(one, np.float64) for one in part] for part in (results, before)))
    return len(results) == len(before) and all(is_alike(*pair) for pair in pairs)


def _compare(meetings: list[_Meeting]) -> Iterator[tuple[LabelledOutputs, list[NDArray[Any]], PairSource]]:
    """Answers beside labels, in the form of the record, with the inputs of their rows."""
    known: list[LabelledOutputs] = []
    meetings = [
        _Meeting(m.form, np.asarray(m.answer), np.asarray(m.target), list(map(np.asarray, m.inputs))) for m in meetings
    ]
    for number, meeting in enumerate(meetings):
        if any(_are_halves(meeting, one) for one in meetings[:number]):
            continue  # the other half says the same
        read = _read(meeting, any(_are_halves(meeting, one) for one in meetings[number + 1 :]))
        if read is None:
            continue
        form, answer, labels = read
        at = spread(len(answer), MOST_ROWS)
        found = compare(form, answer[at], labels[at])
        if found is None or not len(found.labels) or any(_are_same(found, one) for one in known):
            continue
        known.append(found)
        source = {"chosen": PairSource.COMPARISON, "numbers": PairSource.DIFFERENCE}.get(meeting.form, PairSource.LOSS)
        yield found, [one[at] for one in meeting.inputs], source


def _are_same(one: LabelledOutputs, other: LabelledOutputs) -> bool:
    """Whether these answers were told already: a loss and an accuracy are of the same ones."""
    mine, theirs = (found.guesses if found.values is None else found.values for found in (one, other))
    return (one.kind, one.width) == (other.kind, other.width) and np.array_equal(mine, theirs)  # type: ignore[arg-type]


def _are_halves(one: _Meeting, other: _Meeting) -> bool:
    """Whether they are the logarithms of yes and of no, each multiplied with its label."""
    if not one.form == other.form == "weighed" or one.answer.shape != other.answer.shape:
        return False
    shares = np.exp(one.answer) + np.exp(other.answer), np.abs(one.target) + np.abs(other.target)
    return all(np.allclose(share, 1, atol=ALIKE) for share in shares)


def _read(meeting: _Meeting, is_half: bool) -> tuple[str, NDArray[Any], NDArray[Any]] | None:
    """The form of the answers, themselves and their labels."""
    answer, target = meeting.answer, meeting.target
    if is_half:
        return "binary", np.exp(answer), np.abs(target)
    if meeting.form == "numbers":
        return "numbers", answer, target
    if answer.ndim < 2 or answer.shape[-1] < 2:
        return None
    if meeting.form == "weighed":
        target = np.abs(target)
        fits = bool(np.allclose(target.sum(-1), 1)) and bool(np.isin(target, (0, 1)).all())
    else:
        target = target[..., -1] if meeting.form == "picked" else target
        fits = target.size == answer[..., 0].size
        target = target.reshape(answer.shape[:-1]) if fits else target
    are_shares = bool(answer.min() >= 0) and np.allclose(answer.sum(-1), 1, atol=ALIKE)
    return ("shares" if are_shares else "classes", answer, target) if fits else None


@dataclass(frozen=True, eq=False)
class _Meeting:
    """Answers beside labels."""

    form: str
    """`numbers` (the labels are subtracted), `weighed` (they are multiplied with scores), `picked` (they choose among scores)
    or `chosen` (the highest score is compared with them)."""
    answer: Any
    target: Any
    inputs: list[Any]


@dataclass(frozen=True)
class _Value:
    """What an array was computed from."""

    sources: frozenset[int] = frozenset()
    meetings: tuple[_Meeting, ...] = ()
    """Those behind which neither weights nor rows came in."""
    scores: Any = None
    """The scores of which it is the place of the highest."""


class _Trail:
    """What each array is computed from, while operations are followed."""

    def __init__(self, weights: Sequence[Any]) -> None:
        self._weights = frozenset(map(id, weights))
        self._known: dict[int, tuple[Any, _Value]] = {}

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Follow what is traced meanwhile, and what functions with rules or compilations of their own hold."""
        from jax._src.core import set_current_trace
        from jax._src.interpreters.partial_eval import DynamicJaxprTrace
        from jax.extend.core import jaxpr_as_fun

        original = DynamicJaxprTrace.process_primitive

        @functools.wraps(original)
        def process(trace: Any, primitive: Any, operands: Any, params: Any, *rest: Any) -> Any:
            operands = list(operands)
            if primitive.name in ("jit", "pjit"):
                with set_current_trace(trace):
                    return jaxpr_as_fun(params["jaxpr"])(*operands)
            made = original(trace, primitive, operands, params, *rest)
            value = self._follow(primitive.name, operands, params)
            self._known.update((id(one), (one, value)) for one in (made if primitive.multiple_results else [made]))
            return made

        def pass_on(trace: Any, primitive: Any, function: Any, *rest: Any, **_: Any) -> Any:
            with set_current_trace(trace):
                return function.call_wrapped(*rest[-1])

        rules: Any = {"process_custom_jvp_call": pass_on, "process_custom_vjp_call": pass_on}
        with mock.patch.multiple(DynamicJaxprTrace, process_primitive=process, **rules):
            yield

    def meetings(self, results: Sequence[Any]) -> list[_Meeting]:
        """Where answers met labels in what gave these results."""
        return list(dict.fromkeys(meeting for one in results for meeting in self._value(one).meetings))

    def _value(self, one: Any) -> _Value:
        if id(one) not in self._known:
            is_source = id(one) in self._weights or np.size(one) > 1
            self._known[id(one)] = one, _Value(frozenset({id(one)}) if is_source else frozenset())
        return self._known[id(one)][1]

    def _follow(self, name: str, operands: list[Any], params: Any) -> _Value:
        values = [self._value(one) for one in operands]
        sources = frozenset().union(*(one.sources for one in values))
        scores = values[0].scores if name in _SAME else None
        if name == "argmax" and params["axes"] == (np.ndim(operands[0]) - 1,):
            scores = operands[0]
        meeting, pairs = self._meeting(name, operands, params, values), zip(operands, values, strict=True)
        if meeting is not None:
            meetings = [meeting]
        elif any(one.sources and not self._is_answer(one) and np.size(operand) > 1 for operand, one in pairs):
            meetings = []
        else:
            meetings = [met for one in values for met in one.meetings]
        return _Value(sources, tuple(dict.fromkeys(meetings)), scores)

    def _is_answer(self, value: _Value) -> bool:
        return bool(value.sources & self._weights) and bool(value.sources - self._weights)

    def _meeting(self, name: str, operands: list[Any], params: Any, values: list[_Value]) -> _Meeting | None:
        form = _FORMS.get(name)
        if form is None:
            return None
        at = 0 if self._is_answer(values[0]) else 1
        (answer, target), labels = (operands[at], operands[1 - at]), values[1 - at].sources
        if not self._is_answer(values[at]) or not labels or labels & self._weights or np.size(target) < 2:
            return None
        if form == "chosen":
            answer = values[at].scores
            fits = answer is not None
        elif form == "picked":
            single = all(size == 1 for size in params["slice_sizes"])
            fits = single and math.prod(np.shape(target)[:-1]) == math.prod(np.shape(answer)[:-1])
        else:
            fits = np.shape(answer) == np.shape(target)
        if not fits:
            return None
        inputs = [one for key, (one, _) in self._known.items() if key in values[at].sources - self._weights]
        return _Meeting(form, answer, target, [one for one in inputs if np.shape(one)[:1] == np.shape(answer)[:1]])
