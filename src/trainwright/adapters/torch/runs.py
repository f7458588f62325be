"""Short training runs: the basis of the overfit test, the baseline and every experiment."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import Run, Train, Training
from trainwright.probes.constant import JudgedLoss, all_hits, constant_and_floor, hits_of_classes
from trainwright.stages.overfit import Hits
from trainwright.tensors.torch import objects as tensors


@dataclass(frozen=True, kw_only=True)
class Look:
    """A batch in evaluation mode, after a run."""

    loss: float
    losses: list[JudgedLoss]
    scores: Any
    """(rows, classes), or None."""
    labels: Any
    """(rows), or None."""


def train(training: Training, request: Train) -> Run:
    """Take steps over the same batches in turn, from the initial weights; then restore the weights."""
    return short_runs.train(training, functools.partial(_at_end, training), request)


def _at_end(training: Any, batches: Sequence[Any]) -> dict[str, Any]:
    """Losses and predictions of the batches in evaluation mode, and the loss of a constant prediction."""
    looks: list[Look] = []
    for batch in batches:
        look = training.look(batch)
        if look is None:
            return {}
        looks.append(look)
    losses = [look.loss for look in looks]
    answers = [_answers(look) for look in looks]
    constant, floor = constant_and_floor([look.losses for look in looks], losses)
    complete = all(p for p, _ in answers)
    return {
        "evaluated": sum(losses) / len(losses),
        "constant": constant,
        "floor": floor,
        "predictions": tuple(c for p, _ in answers for c in p) if complete else (),
        "labels": tuple(c for _, t in answers for c in t) if complete else (),
        "hits": all_hits([hits_of_classes(*told) or _hits_of(look.losses) for told, look in zip(answers, looks)]),
    }


def _hits_of(calls: Sequence[JudgedLoss]) -> Hits | None:
    """Of a batch whose rows have no class of their own: of its only loss call."""
    return calls[0].hits if len(calls) == 1 else None


def _answers(look: Look) -> tuple[list[int], list[int]]:
    """Predicted and true classes: from the batch's labels, otherwise from the targets of its only loss call."""
    found = predicted_classes(look.scores, look.labels)
    return look.losses[0].answers if not found[0] and len(look.losses) == 1 else found


def predicted_classes(scores: Any, labels: Any) -> tuple[list[int], list[int]]:
    """Predicted and true classes, where scores are (N, C) and labels (N)."""
    if not tensors.is_tensor(labels) or labels.dim() != 1 or labels.is_floating_point():
        return [], []
    if scores is None or scores.dim() != 2 or len(scores) != len(labels) or scores.shape[1] < 2:
        return [], []
    return scores.argmax(-1).tolist(), [int(x) for x in labels.tolist()]
