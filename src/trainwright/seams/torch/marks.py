"""Marks on a model's outputs, and on arrays made from them, and records of where they are compared with labels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.core.finding import Failure, Place
from trainwright.seams.source.places import user_place
from trainwright.stages.evaluation import ActiveNoise, Comparison
from trainwright.tensors.torch import objects as tensors

_WORDS: dict[Any, str] = {np.equal: "==", np.not_equal: "!=", np.subtract: "-"}

Compare = Callable[[str, np.ndarray, Any, Any, Callable[[Any, Any], Any], bool], tuple[Any, Any]]
"""Takes the operation, the predictions, the labels, the predictions' mark, the comparison function, and whether the
predictions are on the left; returns the result and its mark."""


@dataclass(eq=False, kw_only=True)
class ModelCall:
    """One call of a model from outside any other model."""

    number: int
    module: nn.Module
    training: bool
    graded: bool
    where: Place | None
    turn: int
    inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    beside: list[list[ModelCall]] = field(default_factory=list)
    """For each input tensor: all calls that received it."""
    scores: torch.Tensor | None = None
    resting: tuple[nn.Module, ...] = ()
    """Layers with dropout or batch statistics that were in evaluation mode although gradients were on."""
    modes: dict[int, bool] = field(default_factory=dict)
    """For each of its modules, by id: whether it was in training mode."""
    trained: bool = False
    """Whether a backward pass went through it."""
    noise: dict[tuple[str, Place | None], ActiveNoise] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """The origin of a tensor."""

    calls: frozenset[ModelCall]
    measured: bool = False
    """It is the result of a comparison or a loss."""
    columns: int | None = None
    """The number of entries over which the argmax was taken; None: not an index."""
    indexed_at: Place | None = None

    def indexed(self, columns: int) -> Mark:
        """The mark of an index over this many columns."""
        return Mark(self.calls, self.measured, columns, user_place(sys._getframe(2)))


@dataclass(frozen=True)
class Meeting:
    """A comparison of a model's output with something that is not the model's."""

    calls: frozenset[ModelCall]
    kind: str
    """==, !=, -, taken out, number, own loss, or a loss function's name."""
    where: Place | None
    lines: frozenset[tuple[str, int]] = frozenset()
    """All user lines on the stack."""


def refused_call(name: str, answers: Any, truth: Any, failure: Failure) -> Comparison | None:
    """A library's metric function that raised, as a comparison of its arguments."""
    try:
        predictions, labels = (as_tensor(np.asarray(v)) for v in (answers, truth))
    except Exception:  # rows of unequal length
        return None
    if predictions is None or labels is None or not predictions.dim() or not labels.dim():
        return None
    mark, where = Mark(frozenset()), failure.where
    found: Comparison = comparison_of(name, predictions, labels, None, mark, predictions, where, failure)
    return found


def as_tensor(value: Any) -> torch.Tensor | None:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return torch.from_numpy(np.array(value))
    return value if isinstance(value, torch.Tensor) else None


def largest_of(value: Any) -> Any:
    """The values of a pair of values and their places, as max, min and topk return it; anything else as it is."""
    is_pair = isinstance(value, tuple) and isinstance(getattr(value, "indices", None), torch.Tensor)
    return value.values if is_pair else value


def scores_for(predictions: Any, labels: Any, mark: Mark) -> torch.Tensor | None:
    """The model's outputs for these labels, over all calls that they belong to."""
    rows = len(labels)
    if isinstance(predictions, np.ndarray) and len(predictions.shape) > len(labels.shape):
        return as_tensor(predictions)
    is_real = isinstance(predictions, torch.Tensor) and predictions.is_floating_point()
    if is_real and predictions.shape[:-1] == labels.shape:
        return as_tensor(predictions)  # the model's outputs may have further columns or positions
    calls = sorted(mark.calls, key=lambda c: c.number)
    last = calls[-1].scores
    alike = [s for c in calls if (s := c.scores) is not None and last is not None and s.shape[1:] == last.shape[1:]]
    together = torch.cat(alike) if len(alike) > 1 and sum(len(s) for s in alike) == rows else None
    return together if together is not None else last


@torch.no_grad()
def comparison_of(
    word: str,
    predictions: torch.Tensor,
    labels: torch.Tensor,
    result: Any,
    mark: Mark,
    scores: torch.Tensor | None,
    where: Place | None,
    failure: Failure | None,
) -> Comparison:
    shape = tuple(result.shape) if isinstance(result, torch.Tensor) else ()
    share = None
    if isinstance(result, torch.Tensor) and word != "-" and result.numel():
        share = float((result if word == "==" else ~result).float().mean())
    return Comparison(
        operation=word,
        predictions=tensors.facts(predictions),
        labels=tensors.facts(labels),
        result=shape,
        where=where,
        whole_predictions=_are_whole(predictions),
        whole_labels=_are_whole(labels),
        columns=mark.columns,
        indexed_at=mark.indexed_at,
        equal_share=share,
        right_share=_right_share(scores, labels),
        scores=tuple(scores.shape) if scores is not None else (),
        failure=failure,
    )


def _are_whole(values: torch.Tensor) -> bool:
    if not values.is_floating_point():
        return True
    finite = values[torch.isfinite(values)]
    return bool((finite == finite.round()).all()) if finite.numel() else True


def _right_share(scores: torch.Tensor | None, labels: torch.Tensor) -> float | None:
    """The accuracy of the argmax, or of the side of the midpoint for one score per row.

    The scores may still be on the device, where the script has moved its predictions and labels away from it.
    """
    labels = labels if scores is None else labels.to(scores.device)
    classes = tensors.predicted_classes(scores, labels)
    return float((classes == labels).float().mean()) if classes is not None else None


class _WatchedArray(np.ndarray):
    """An array with the mark of the tensors that it was made from."""

    mark: Any
    compare: Compare | None

    def __array_finalize__(self, made_of: Any) -> None:
        self.mark = getattr(made_of, "mark", None)
        self.compare = getattr(made_of, "compare", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        watched = [i for i in inputs if isinstance(i, _WatchedArray)]
        plain = [_plain(i) for i in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(o) for o in kwargs["out"])
        first = watched[0] if watched else self
        call = getattr(ufunc, method)
        single = len(inputs) == 2 and len(watched) == 1 and method == "__call__" and ufunc in _WORDS
        other = plain[1 - [i is first for i in inputs].index(True)] if single else None
        if single and first.compare is not None and isinstance(other, np.ndarray) and other.ndim:
            left = inputs[0] is first
            result, mark = first.compare(
                _WORDS[ufunc], _plain(first), other, first.mark, lambda x, y: call(x, y, **kwargs), left
            )
            return _watched(result, mark, first.compare)
        return _watched(call(*plain, **kwargs), first.mark, first.compare)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = _first_watched((args, kwargs))
        # Plain arrays throughout, because a function may check for exactly that type.
        result = (
            func(*_all_plain(args), **_all_plain(kwargs))
            if func is not np.argmax
            else (super().__array_function__(func, types, args, kwargs))
        )
        return _watched(result, found.mark, found.compare) if found is not None else result

    def argmax(self, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        result = np.asarray(self).argmax(axis, *args, **kwargs)
        columns = self.shape[axis] if isinstance(axis, int) and self.ndim else None
        mark = self.mark.indexed(columns) if columns is not None and self.mark is not None else self.mark
        return _watched(result, mark, self.compare)

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()


def watched(array: np.ndarray, mark: Any, compare: Compare) -> np.ndarray:
    """The same array, as one that reports comparisons."""
    found: np.ndarray = _watched(array, mark, compare)
    return found


def _watched(value: Any, mark: Any, compare: Compare | None) -> Any:
    if not isinstance(value, np.ndarray) or not value.ndim or value.dtype == object:
        return value[()] if isinstance(value, np.ndarray) and not value.ndim else value
    found = value.view(_WatchedArray)
    found.mark, found.compare = mark, compare
    return found


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, _WatchedArray) else value


def _all_plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        found = [_all_plain(v) for v in value]
        return tuple(found) if isinstance(value, tuple) else found
    if isinstance(value, dict):
        return {k: _all_plain(v) for k, v in value.items()}
    return _plain(value)


def _first_watched(value: Any) -> _WatchedArray | None:
    if isinstance(value, _WatchedArray):
        return value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((w for v in inner if (w := _first_watched(v)) is not None), None)
