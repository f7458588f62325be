"""Short training runs: what the overfit test, the baseline and every experiment are made of."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from trainwright.adapters.base import Change, Run
from trainwright.adapters.constant import Targets, constant_and_floor
from trainwright.core.repair import Repair
from trainwright.seams.torch import StepRecord
from trainwright.tensors import torch as tensors

# A run whose loss stays above three times the first one for six steps, after a dozen, does not come back in thirty.
LOST_STEPS = 12
LOST_FACTOR = 3.0


@dataclass(frozen=True, kw_only=True)
class Look:
    """A batch in evaluation mode, after a run."""

    loss: float
    targets: list[Targets]
    scores: Any
    """(rows, classes), or None."""
    labels: Any
    """(rows), or None."""


class Steps(Protocol):
    """A training whose steps can be taken; a batch is whatever it calls one."""

    change: Change

    def take(self, count: int, *, seed: int) -> list[Any]:
        """Some of the first batches; one is among those with most classes."""

    def rows_of(self, batch: Any) -> int:
        """How many rows it holds."""

    def reset(self) -> None:
        """Back to the weights from which training would start."""

    def ready(self, seed: int) -> AbstractContextManager[None]:
        """Prepare the model as training does, with seeded random numbers."""

    def build_optimizer(self) -> None:
        """Make the optimizer as training would, with the repairs in force."""

    def take_step(self, batch: Any, number: int) -> StepRecord:
        """One step with its update; what it raised is in the record."""

    def look(self, batch: Any) -> Look | None:
        """The batch in evaluation mode, nothing updated; None where that raised or cannot be had."""


def train(training: Steps, *, steps: int, batches: int, seed: int, changes: Sequence[Repair] = (),
          seconds: float = 30.0, enough: float = 0.0) -> Run:  # fmt: skip
    """Take steps over the same batches in turn, from the weights at the start; then put these back."""
    chosen = training.take(batches, seed=seed)
    training.reset()
    training.change.tried = list(changes)
    started, losses, failure = time.monotonic(), [], None
    at_end: dict[str, Any] = {}
    try:
        with training.ready(seed):
            training.build_optimizer()
            for step in range(steps):
                record = training.take_step(chosen[step % len(chosen)], step)
                if record.failure is not None:
                    failure = record.failure
                    break
                losses.append(record.loss if record.loss is not None else math.nan)
                if not math.isfinite(losses[-1]):
                    losses += [math.nan] * (steps - step - 1)
                    break
                if (
                    time.monotonic() - started > seconds
                    or _is_lost(losses)
                    or _is_enough(losses, len(chosen), enough)
                ):
                    break
            at_end = _at_end(training, chosen)
    finally:
        training.change.tried = []
        training.reset()
    return Run(
        losses=tuple(losses), rows=sum(training.rows_of(b) for b in chosen), failure=failure,
        seconds=time.monotonic() - started, **at_end,
    )  # fmt: skip


def _at_end(training: Steps, batches: Sequence[Any]) -> dict[str, Any]:
    """Losses and predictions of the batches in evaluation mode, and what a constant prediction loses there."""
    looks: list[Look] = []
    for batch in batches:
        look = training.look(batch)
        if look is None:
            return {}
        looks.append(look)
    losses = [look.loss for look in looks]
    answers = [_answers(look) for look in looks]
    constant, floor = constant_and_floor([look.targets for look in looks], losses)
    complete = all(p for p, _ in answers)
    return {
        "evaluated": sum(losses) / len(losses),
        "constant": constant,
        "floor": floor,
        "predictions": tuple(c for p, _ in answers for c in p) if complete else (),
        "labels": tuple(c for _, t in answers for c in t) if complete else (),
    }


def _answers(look: Look) -> tuple[list[int], list[int]]:
    """Predicted and true classes: by the batch's labels, else by the targets of its one loss call."""
    found = predicted_classes(look.scores, look.labels)
    return look.targets[0].classes if not found[0] and len(look.targets) == 1 else found


def predicted_classes(scores: Any, labels: Any) -> tuple[list[int], list[int]]:
    """Predicted and true classes, where scores are (N, C) and labels (N)."""
    if not tensors.is_tensor(labels) or labels.dim() != 1 or labels.is_floating_point():
        return [], []
    if scores is None or scores.dim() != 2 or len(scores) != len(labels) or scores.shape[1] < 2:
        return [], []
    return scores.argmax(-1).tolist(), [int(x) for x in labels.tolist()]


def _is_enough(losses: Sequence[float], batches: int, enough: float) -> bool:
    """Whether the mean loss, the last time over all batches, is at most this share of the first step's."""
    return len(losses) >= 2 * batches and sum(losses[-batches:]) / batches <= enough * losses[0]


def _is_lost(losses: Sequence[float]) -> bool:
    """Whether a run has gone astray for good: more of it would cost time and tell nothing."""
    return len(losses) >= LOST_STEPS and min(losses[-LOST_STEPS // 2 :]) > LOST_FACTOR * losses[0] > 0
