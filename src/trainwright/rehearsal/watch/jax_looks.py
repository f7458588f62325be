"""What JAX functions were called with, looked at once the run is over: answers beside labels, and whether weights moved."""

from __future__ import annotations

import contextlib
import io
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Place
from trainwright.rehearsal.record import Answers, Kind, Output, Pass, Source
from trainwright.rehearsal.recorder import MOST_ROWS, Recorder
from trainwright.rehearsal.watch.jax_trail import Meeting, Trail
from trainwright.rehearsal.watch.keras_losses import Compared, Expected, compare
from trainwright.rehearsal.watch.keras_rows import inputs_of, keys_of, spread

# Seconds in which updates are looked at, and evaluations.
MOST_SECONDS = 10.0
# Of a set that was trained on, at least this share of the rows is met, few as the updates are that are looked at.
PART = 0.02
# Values of each tensor of weights by which it is told whether they moved.
FOLLOWED = 256
# By so much, relative to its largest value, what is computed again may differ.
ALIKE = 1e-2


@dataclass(eq=False)
class Held:
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
        self._met: list[tuple[list[Meeting], list[Any], list[Any]]] = []
        """Of the call that is traced: what met, the loss, and some values of the weights."""
        self._trace: Any = None
        self._traced: dict[Any, Callable[..., Any]] = {}
        self._shapes: set[tuple[Any, ...]] = set()
        """The shapes of weights, in the order in which they are passed."""
        self.weights: set[bytes] = set()
        self.most_rows = 0
        jax.tree_util.register_dataclass(Meeting, ["answer", "target", "inputs"], ["form"])

    def look(self, calls: Iterable[Held], trains: bool) -> None:
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

    def _make_again(self, held: Held, trains: bool) -> Any:
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
        trail = Trail(weights)
        with trail.following():
            result = function(*args, **kwargs)
        results = self._leaves(result)
        some = [one.reshape(-1)[:: max(1, one.size // FOLLOWED)] for one in weights]
        self._met.append((trail.meetings(results[:1] if is_loss else results), results[:1], some))
        return result

    def _floats(self, result: Any) -> list[Any]:
        return [leaf for leaf in self._leaves(result) if str(getattr(leaf, "dtype", "")).startswith("float")]

    def keep_choice(self, held: Held, scores: Any, labels: Any, rows: Any) -> None:
        """Keep scores whose choice was compared with labels."""
        self._keep(held, [Meeting("chosen", scores, labels, [rows])], None, np.array([held.update]))

    def _keep(self, held: Held, meetings: list[Meeting], loss: float | None, weights: NDArray[Any]) -> None:
        recorder, met, made = self._recorder, Counter[tuple[Kind, int]](), None
        model, trains = recorder.number_of(self), loss is not None
        if loss is not None:
            recorder.record.losses.append((held.update, loss))
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


def _compare(meetings: list[Meeting]) -> Iterator[tuple[Compared, list[NDArray[Any]], Source]]:
    """Answers beside labels, in the form of the record, with the inputs of their rows."""
    known: list[Compared] = []
    meetings = [
        Meeting(m.form, np.asarray(m.answer), np.asarray(m.target), list(map(np.asarray, m.inputs))) for m in meetings
    ]
    for number, meeting in enumerate(meetings):
        if any(_are_halves(meeting, one) for one in meetings[:number]):
            continue  # the other half says the same
        read = _read(meeting, any(_are_halves(meeting, one) for one in meetings[number + 1 :]))
        if read is None:
            continue
        expected, answer, labels = read
        at = spread(len(answer), MOST_ROWS)
        found = compare(expected, answer[at], labels[at], None, MOST_ROWS)
        if found is None or not len(found.labels) or any(_are_same(found, one) for one in known):
            continue
        known.append(found)
        source = {"chosen": Source.COMPARISON, "numbers": Source.DIFFERENCE}.get(meeting.form, Source.LOSS)
        yield found, [one[at] for one in meeting.inputs], source


def _are_same(one: Compared, other: Compared) -> bool:
    """Whether these answers were told already: a loss and an accuracy are of the same ones."""
    mine, theirs = (found.guesses if found.values is None else found.values for found in (one, other))
    return (one.kind, one.width) == (other.kind, other.width) and np.array_equal(mine, theirs)  # type: ignore[arg-type]


def _are_halves(one: Meeting, other: Meeting) -> bool:
    """Whether they are the logarithms of yes and of no, each multiplied with its label."""
    if not one.form == other.form == "weighed" or one.answer.shape != other.answer.shape:
        return False
    shares = np.exp(one.answer) + np.exp(other.answer), np.abs(one.target) + np.abs(other.target)
    return all(np.allclose(share, 1, atol=ALIKE) for share in shares)


def _read(meeting: Meeting, is_half: bool) -> tuple[Expected, NDArray[Any], NDArray[Any]] | None:
    """What the answers are, themselves and their labels."""
    answer, target = meeting.answer, meeting.target
    if is_half:
        return Expected(kind=Kind.BINARY), np.exp(answer), np.abs(target)
    if meeting.form == "numbers":
        return Expected(kind=Kind.NUMBERS), answer, target
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
    return (Expected(kind=Kind.CLASSES, from_logits=not are_shares), answer, target) if fits else None
