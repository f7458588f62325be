"""Observes how a script uses its model's outputs other than for training: comparisons with labels, and numbers.

Every tensor derived from a model's output is marked with the calls that produced it. If a marked tensor is compared
with an unmarked one, subtracted from it or passed to a loss with it, that is an evaluation of those calls through which
no backward pass went.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from trainwright.core import Call, Place, Repair, Seam
from trainwright.seams.failures.blame import failure_of, passed_on
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.source.places import is_ours, is_users, user_frame, user_place
from trainwright.seams.torch.graph import KeptGraphs
from trainwright.seams.torch.layers import active_noise
from trainwright.seams.torch.loss import LOSSES
from trainwright.seams.torch.marks import (
    Mark,
    Meeting,
    ModelCall,
    as_tensor,
    comparison_of,
    largest_of,
    scores_for,
    watched,
)
from trainwright.seams.torch.versions import register_after_calls
from trainwright.stages.evaluation import ActiveNoise, Comparison
from trainwright.tensors.torch import objects as tensors
from trainwright.tensors.torch.transforms import within_transform
from trainwright.timing import now

_EQUALITIES = {"eq": "==", "__eq__": "==", "ne": "!=", "__ne__": "!=", "not_equal": "!="}
_DIFFERENCES = {"sub": "-", "__sub__": "-", "__rsub__": "-", "rsub": "-", "subtract": "-"}
# A result that only takes a tensor's shape or type does not depend on its values.
_SHAPED_LIKE = ("expand_as", "view_as", "reshape_as", "type_as", "to")
_NEW_LIKE = ("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like", "new_zeros", "new_ones",
             "new_full", "new_tensor", "new_empty")  # fmt: skip
_PRODUCTS = ("mul", "__mul__", "__rmul__", "multiply", "__and__", "logical_and", "bitwise_and", "__or__")
_TAKEN_OUT = ("numpy", "tolist", "__array__", "item", "__int__", "__float__", "__format__")
_LARGEST_OF = ("argmax", "max")
# A model called this often on the same batch is used to estimate the spread of its outputs (Monte Carlo dropout).
_ASKED_AGAIN = 3
# Larger scores (tokens over a vocabulary) are not stored in addition to the user's own.
LARGEST_SCORES = 16_000_000


class TookTooLong(BaseException):
    """The time limit for code run by the walk has passed."""


class EvaluationWatch(TorchFunctionMode):
    """Watches the user's code while it trains a little and evaluates.

    Args:
        repairs: the repairs in force; those of the seams METRICS and EVALUATION.
        seconds: raise TookTooLong after this long.
        evaluated_at: lines that are known to call the model in an evaluation, for repairs of its mode.
    """

    def __init__(self, repairs: Sequence[Repair], seconds: float, evaluated_at: frozenset[Place]) -> None:
        super().__init__()
        self.calls: list[ModelCall] = []
        self.meetings: list[Meeting] = []
        self.comparisons: list[tuple[ModelCall, Comparison]] = []
        self.turn = 0
        self._repairs = [r for r in repairs if r.seam == Seam.METRICS]
        self._modes = [r for r in repairs if r.seam == Seam.EVALUATION]
        self._evaluated_at = evaluated_at
        self._ends = now() + seconds
        self._marks: Any = WeakTensorKeyDictionary()
        self.graphs = KeptGraphs(lambda: self._open[0] if self._open else None)
        self._readers: Any = WeakTensorKeyDictionary()
        self._open: list[ModelCall | None] = []
        self._changed: list[tuple[nn.Module, list[tuple[nn.Module, bool]]]] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[EvaluationWatch]:
        """Watch while the context lasts."""
        before = nn.modules.module.register_module_forward_pre_hook(self._before)
        after = register_after_calls(self._after)
        try:
            with self.graphs.counting(), self:
                yield self
        finally:
            before.remove()
            after.remove()

    # The model's calls

    def _before(self, module: nn.Module, args: Any) -> None:
        if self._open or within_transform() or next(module.parameters(), None) is None:
            if self._open:
                self._open.append(None)
            return
        where = user_place(sys._getframe(1))
        if self._modes and where in self._evaluated_at:
            self._set_mode(module)
        call = ModelCall(
            number=len(self.calls),
            module=module,
            training=module.training,
            graded=torch.is_grad_enabled(),
            where=where,
            turn=self.turn,
            resting=_resting(module) if torch.is_grad_enabled() else (),
        )
        self.calls.append(call)
        self._open.append(call)

    def _set_mode(self, module: nn.Module) -> None:
        if evaluation_call(self._modes)["evaluating"]:
            self._changed.append((module, [(m, m.training) for m in module.modules()]))
            for inner in module.modules():
                inner.training = False

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if not self._open:
            return
        call = self._open.pop()
        if call is None:
            return
        if self._changed and self._changed[-1][0] is module:
            for inner, mode in self._changed.pop()[1]:
                inner.training = mode
        given = tensors_in((args, kwargs))
        call.beside = [self._readers.setdefault(t, []) for t in given]
        for readers in call.beside:
            readers.append(call)
        if call.noise:
            call.modes = {id(m): m.training for m in module.modules()}
            call.inputs = (args, kwargs)
        found = tensors_in(output)
        floats = [t for t in found if t.is_floating_point() and t.dim()]
        scores = next(iter(floats), None)
        call.scores = scores.detach() if scores is not None and scores.numel() <= LARGEST_SCORES else None
        before = frozenset(c for t in given if (m := self._marks.get(t)) for c in m.calls)
        mark = Mark(frozenset([call]) | before)
        for tensor in found:
            own = tensor.is_floating_point() and not tensor.dim()
            self._marks[tensor] = Mark(mark.calls, measured=own)
            if own:
                self._meet(mark.calls, "own loss", call.where)
            if tensor.requires_grad:
                tensor.register_hook(_Trained(call))

    # How its outputs are used

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if now() > self._ends:
            raise TookTooLong
        if within_transform():
            return func(*args, **kwargs)
        call = self._open[0] if self._open else None
        if call is not None:
            if (noise := active_noise(func, args, kwargs)) is not None and not _chosen(call.module):
                where = user_place(sys._getframe(1))
                call.noise.setdefault((noise, where), ActiveNoise(operation=noise, where=where))
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in _EQUALITIES or name in _DIFFERENCES:
            return self._compare(func, name, args, kwargs)
        result = func(*args, **kwargs)
        sources = tensors_in((args[:1] if name in _SHAPED_LIKE else args, kwargs))
        marks = [m for t in sources if (m := self._marks.get(t)) is not None]
        if name in _NEW_LIKE:
            return result
        if marks:
            return self._follow(func, name, args, kwargs, result, marks)
        return result

    def _follow(self, func: Any, name: str, args: Any, kwargs: Any, result: Any, marks: list[Mark]) -> Any:
        calls = frozenset(c for m in marks for c in m.calls)
        measured = any(m.measured for m in marks)
        if func in LOSSES:
            plain = [t for t in tensors_in((args[1:], kwargs)) if t not in self._marks]
            if plain:
                self._meet(calls, LOSSES[func], user_place(sys._getframe(2)))
                measured = True
        elif name in _TAKEN_OUT:
            classes = isinstance(args[0], torch.Tensor) and not args[0].is_floating_point()
            whole = classes and args[0].numel() > 1
            # The class of a single row: an agent that acts takes one out of training mode, too.
            single = classes and not any(c.training or c.graded for c in calls)
            if whole or measured or single:
                kind = "number" if measured and not whole else "taken out"
                self._meet(calls, kind, user_place(sys._getframe(2)))
            if isinstance(result, np.ndarray):
                mark = next((m for m in marks if m.columns), marks[0])
                joined = Mark(calls, measured, mark.columns, mark.indexed_at)
                return watched(result, joined, self._met) if not measured else result
            return result
        elif name in _PRODUCTS and any(_has_many(t) and t not in self._marks for t in tensors_in((args, kwargs))):
            self._meet(calls, "product", user_place(sys._getframe(2)))
        columns, at = next(((m.columns, m.indexed_at) for m in marks if m.columns), (None, None))
        if name in _LARGEST_OF and (over := _columns(args, kwargs)) is not None:
            columns, at = over, user_place(sys._getframe(2))
        for tensor in tensors_in(result):
            self._marks[tensor] = Mark(calls, measured, columns, at)
        return result

    def _meet(self, calls: frozenset[ModelCall], kind: str, where: Place | None) -> None:
        self.meetings.append(Meeting(calls, kind, where, _user_lines()))

    def _compare(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        given = list(args[:2]) if len(args) > 1 else [*args[:1], kwargs.get("other")]
        pair = [largest_of(v) for v in given]
        marks = [self._marks.get(t) if isinstance(t, torch.Tensor) else None for t in pair]
        mark = marks[0] or marks[1]
        if mark is None:
            return func(*args, **kwargs)
        labels = next((t for t, m in zip(pair, marks) if m is None), None)
        if (marks[0] and marks[1]) or mark.measured or not _has_many(labels):
            result = func(*args, **kwargs)
            joined = frozenset(c for m in marks if m for c in m.calls)
            measured = any(m.measured for m in marks if m)
            for tensor in tensors_in(result):
                self._marks[tensor] = Mark(joined, measured, mark.columns, mark.indexed_at)
            return result
        left = marks[0] is not None
        rest = {k: v for k, v in kwargs.items() if k != "other"}
        word = _EQUALITIES.get(name) or _DIFFERENCES[name]
        predictions, whole = (pair[0], given[0]) if left else (pair[1], given[1])

        def run(x: Any, y: Any) -> Any:
            if whole is not predictions and (x is predictions or y is predictions):
                return NotImplemented  # torch's answer for a tuple, of which Python makes False
            return func(x, y, *args[2:], **rest)

        result, after = self._met(word, predictions, labels, mark, run, left, of_pair=whole is not predictions)
        if isinstance(result, torch.Tensor):
            self._marks[result] = after
        return result

    def _met(
        self,
        word: str,
        predictions: Any,
        labels: Any,
        mark: Mark,
        run: Callable[[Any, Any], Any],
        left: bool,
        *,
        of_pair: bool = False,
    ) -> tuple[Any, Mark]:
        """Compare predictions with labels, with the repairs in force; returns the result and its mark."""
        where = user_place(sys._getframe(2))
        last = max(mark.calls, key=lambda c: c.number)
        scores = scores_for(predictions, labels, mark)
        given = predictions
        predictions, labels = self._repaired(predictions, labels, scores, mark)
        mark = mark if predictions is given else Mark(mark.calls, mark.measured)
        failure, error, result = None, None, None
        try:
            result = passed_on(run, *((predictions, labels) if left else (labels, predictions)))
        except Exception as raised:  # the user's comparison raised, which is a finding
            failure, error = failure_of(raised), raised
        values = [as_tensor(v) for v in (predictions, labels, result)]
        if values[0] is not None and values[1] is not None:
            comparison = comparison_of(word, values[0], values[1], values[2], mark, scores, where, failure)
            self.comparisons.append((last, replace(comparison, of_pair=of_pair and predictions is given)))
        self._meet(mark.calls, word, where)
        if error is not None:
            raise error
        return result, Mark(mark.calls, word != "-", mark.columns, mark.indexed_at)

    def _repaired(self, predictions: Any, labels: Any, scores: Any, mark: Mark) -> tuple[Any, Any]:
        if not self._repairs:
            return predictions, labels
        pair = (as_tensor(predictions), as_tensor(labels))
        given = {"predictions": pair[0], "labels": pair[1], "scores": scores, "columns": mark.columns}
        call = Call(seam=Seam.METRICS, given=given, tensors=tensors)
        for repair in self._repairs:
            call = mended(repair, call)
        changed = call["predictions"]
        if changed is pair[0]:
            return predictions, labels
        return (changed.numpy() if isinstance(predictions, np.ndarray) else changed), labels

    def kept_graphs(self) -> list[tuple[ModelCall, int]]:
        """The calls of this pass whose graphs are still alive, and the bytes that each takes."""
        calls = [c for c in self.calls if c.turn == self.turn and c.graded and not c.trained]
        return [(c, size) for c in calls if (size := self.graphs.bytes_of(c))]

    # Known at the end

    def evaluations(self, *, sure: bool = True) -> list[ModelCall]:
        """The calls whose outputs met labels and through which no backward pass went.

        Args:
            sure: ignore outputs that are only multiplied, since the other factor may be labels or a mask.
        """
        unsure = ("number", "product") if sure else ("number",)
        none_trained = not any(c.trained for c in self.calls)
        graded = [c for c in self.calls if c.graded and none_trained]
        trained_at = {c.where for c in self.calls if c.trained} | {c.where for c in graded}
        found: dict[int, ModelCall] = {}
        for meeting in self.meetings:
            if meeting.kind in unsure or any(c.trained for c in meeting.calls):
                continue
            for call in meeting.calls:
                # Evaluating the current batch in training mode measures the training step.
                beside = call.training and any(c.trained for readers in call.beside for c in readers)
                if not beside and not (call.graded and call.where in trained_at):
                    found[call.number] = call
        return [found[n] for n in sorted(found)]

    def asked_again(self, call: ModelCall) -> bool:
        """Whether a line calls the model on the same batch several times in a pass, without training on any output."""
        return any(
            count >= _ASKED_AGAIN
            for readers in call.beside
            for count in Counter(r.where for r in readers if r.turn == call.turn and not r.trained).values()
        )


def evaluation_call(repairs: Sequence[Repair]) -> Call:
    """What repairs make of an evaluation."""
    given: dict[str, Any] = {"evaluating": False, "restored": False, "cleared": ()}
    call = Call(seam=Seam.EVALUATION, given=given, tensors=tensors)
    for repair in repairs:
        if repair.seam == Seam.EVALUATION:
            call = mended(repair, call)
    return call


@dataclass(frozen=True)
class _Trained:
    """A tensor hook that records that a backward pass went through a model's output."""

    call: ModelCall

    def __call__(self, gradient: torch.Tensor) -> None:
        self.call.trained = True


def _resting(model: nn.Module) -> tuple[nn.Module, ...]:
    noisy = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
    return tuple(m for m in model.modules() if isinstance(m, noisy) and not m.training)


def _chosen(model: nn.Module) -> bool:
    """Whether a model in evaluation mode has layers deliberately put in training mode."""
    noisy = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
    return not model.training and any(m.training for m in model.modules() if isinstance(m, noisy))


def _user_lines() -> frozenset[tuple[str, int]]:
    """The current lines of the user's functions on the stack, up to our function that called them."""
    found, frame = set(), user_frame(sys._getframe(1))
    while frame is not None and not is_ours(frame.f_code.co_filename):
        if is_users(frame.f_code.co_filename):
            found.add((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return frozenset(found)


def tensors_in(value: Any, depth: int = 0) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if depth > 3:
        return []
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in tensors_in(v, depth + 1)]
    if isinstance(value, (list, tuple)):
        return [t for v in value[:4096] for t in tensors_in(v, depth + 1)]
    return []


def _has_many(labels: Any) -> bool:
    return isinstance(labels, torch.Tensor) and labels.dim() > 0


def _columns(args: Any, kwargs: Mapping[str, Any]) -> int | None:
    """The size of the axis over which the maximum is taken; None for the whole tensor."""
    axis = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
    values = args[0] if args else kwargs.get("input")
    if not isinstance(axis, int) or isinstance(axis, bool) or not isinstance(values, torch.Tensor):
        return None
    return int(values.shape[axis]) if values.dim() else None
