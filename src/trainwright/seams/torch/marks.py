"""Marks on a model's outputs, and what a comparison of them with labels came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from trainwright.core import Failure, Place
from trainwright.stages import Comparison
from trainwright.tensors.torch import objects as tensors


@dataclass(eq=False, kw_only=True)
class ModelCall:
    """One call of a model from outside any other model."""

    number: int
    turn: int
    where: Place | None
    scores: torch.Tensor | None = None


@dataclass(frozen=True)
class Mark:
    """The origin of a tensor."""

    calls: frozenset[ModelCall]
    measured: bool = False
    """It is the result of a comparison or a loss."""
    columns: int | None = None
    """The number of entries over which the argmax was taken; None: not an index."""
    indexed_at: Place | None = None


def largest_of(value: Any) -> Any:
    """The values of a pair of values and their places, as max, min and topk return it; anything else as it is."""
    is_pair = isinstance(value, tuple) and isinstance(getattr(value, "indices", None), torch.Tensor)
    return value.values if is_pair else value


def scores_for(predictions: Any, labels: Any, mark: Mark) -> torch.Tensor | None:
    """The model's outputs for these labels, over all calls that they belong to."""
    rows = len(labels)
    is_real = isinstance(predictions, torch.Tensor) and predictions.is_floating_point()
    if is_real and predictions.shape[:-1] == labels.shape:
        return predictions  # the model's outputs may have further columns or positions
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
