"""Short training runs, for any framework: the basis of the overfit test, the baseline and every experiment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from trainwright.adapters.base import Run, Train, Training
from trainwright.stages.learning import NO_LOSS
from trainwright.timing import now

# A run whose loss stays above three times the first one for six steps, after a dozen, does not recover within thirty.
LOST_STEPS = 12
LOST_FACTOR = 3.0
# If training warms up, a short run's rate rises over this many steps: a fraction of any real warm-up, but enough for an
# adaptive optimizer's averages to settle.
WARMED_UP = 6


def warmup_updates(schedule: Sequence[tuple[int, float]]) -> int:
    """The update at which a schedule, as (update, fraction of the peak rate), first peaks; 0: it never rises."""
    return max(schedule, key=lambda point: point[1], default=(0, 1.0))[0]


def rate_share(step: int, warmup: int) -> float:
    """The fraction of the peak rate at a step of a short run: it rises over the first steps if training warms up."""
    rise = min(warmup, WARMED_UP)
    return min(1.0, (step + 1) / (rise + 1))


def train(
    training: Training,
    at_end: Callable[[Sequence[Any]], dict[str, Any]],
    request: Train,
) -> Run:
    """Take steps over the same batches in turn, from the initial weights; then restore the weights.

    Args:
        at_end: measures the batches after the steps; returns fields of Run.
    """
    training.reset()
    losses: list[float] = []
    started, failure = now(), None
    shown: dict[str, Any] = {}
    chosen = training.take(request.batches, seed=request.seed)
    training.active.tried = list(request.changes)
    try:
        with training.ready(request.seed):
            training.build_optimizer()
            for step in range(request.steps):
                record = training.take_step(chosen[step % len(chosen)], step)
                if record.failure is not None:
                    failure = record.failure
                    break
                if record.loss is None and losses:
                    break  # the loop ended itself: a `break` at a number of steps
                if record.loss is None:  # gradients without a backward pass: torch.func, or written by hand
                    return Run(skipped=NO_LOSS)
                losses.append(record.loss)
                if not math.isfinite(losses[-1]):
                    losses += [math.nan] * (request.steps - step - 1)
                    break
                over = now() - started > request.seconds
                if over or _is_lost(losses) or _is_enough(losses, len(chosen), request.enough):
                    break
            shown = at_end(chosen)
    finally:
        training.active.tried = []
        training.reset()
    return Run(
        losses=tuple(losses),
        rows=sum(training.rows_of(b) for b in chosen),
        failure=failure,
        seconds=now() - started,
        **shown,
    )


def _is_enough(losses: Sequence[float], batches: int, enough: float) -> bool:
    """Whether the mean loss over the last pass over all batches is at most this fraction of the first step's.

    A negative loss has no zero to fall to.
    """
    return losses[0] > 0 and len(losses) >= 2 * batches and sum(losses[-batches:]) / batches <= enough * losses[0]


def _is_lost(losses: Sequence[float]) -> bool:
    """Whether a run has diverged for good, so that more steps would only cost time."""
    return len(losses) >= LOST_STEPS and min(losses[-LOST_STEPS // 2 :]) > LOST_FACTOR * losses[0] > 0
