"""Short training runs on a Trainer's twin: what the overfit test, the baseline and every experiment are made of."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trainwright.adapters.base import Run
from trainwright.adapters.constant import Targets, TargetsSeen, constant_and_floor
from trainwright.adapters.hf_twin import Twin, type_like
from trainwright.adapters.torch_probes import rows_of
from trainwright.core.repair import Repair
from trainwright.seams.torch import Observer
from trainwright.tensors import torch as tensors

# A run whose loss stays above three times the first one for six steps, after a dozen, does not come back in thirty.
LOST_STEPS = 12
LOST_FACTOR = 3.0


def train(twin: Twin, *, steps: int, batches: int, seed: int, changes: Sequence[Repair] = (),
          seconds: float = 30.0, enough: float = 0.0) -> Run:  # fmt: skip
    """Take steps over the same batches in turn, from the weights at the start; then put these back."""
    chosen = twin.pool.take(batches, seed=seed)
    twin.reset()
    twin.change.tried = list(changes)
    started, losses, failure = time.monotonic(), [], None
    at_end: dict[str, Any] = {}
    try:
        with twin.ready(seed):
            twin.build_optimizer()
            for step in range(steps):
                observer = Observer(twin.wrapped, twin.change.all)
                with observer.catching() as record:
                    twin.compute(chosen[step % len(chosen)], record)
                    twin.update(rate_share=twin.warmed_up(step))
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
                    or losses[-1] <= enough * losses[0]
                ):
                    break
            at_end = _at_end(twin, chosen)
    finally:
        twin.change.tried = []
        twin.reset()
    return Run(
        losses=tuple(losses), rows=sum(rows_of(b) for b in chosen), failure=failure,
        seconds=time.monotonic() - started, **at_end,
    )  # fmt: skip


def _at_end(twin: Twin, batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Losses and predictions of the batches in evaluation mode, and what a constant prediction loses there."""
    twin.trainer.model.eval()
    losses: list[float] = []
    targets: list[list[Targets]] = []
    answers: list[tuple[list[int], list[int]]] = []
    for batch in batches:
        given = twin.mended_batch(batch)
        inputs = type_like(batch, given)
        observer = Observer(twin.wrapped, twin.change.all)
        with TargetsSeen() as seen, observer.catching() as record, torch.no_grad():
            losses.append(
                float(twin.trainer.compute_loss(twin.wrapped, twin.trainer._prepare_inputs(inputs)))
            )
        if record.failure is not None:
            return {}
        targets.append(seen.calls)
        answers.append(predicted_classes(record.scores, given.get(twin.label_key(given) or "")))
    constant, floor = constant_and_floor(targets, losses)
    complete = all(p for p, _ in answers)
    return {
        "evaluated": sum(losses) / len(losses),
        "constant": constant,
        "floor": floor,
        "predictions": tuple(c for p, _ in answers for c in p) if complete else (),
        "labels": tuple(c for _, t in answers for c in t) if complete else (),
    }


def predicted_classes(scores: Any, labels: Any) -> tuple[list[int], list[int]]:
    """Predicted and true classes, where scores are (N, C) and labels (N)."""
    if not tensors.is_tensor(labels) or labels.dim() != 1 or labels.is_floating_point():
        return [], []
    if scores is None or scores.dim() != 2 or len(scores) != len(labels) or scores.shape[1] < 2:
        return [], []
    return scores.argmax(-1).tolist(), [int(x) for x in labels.tolist()]


def _is_lost(losses: Sequence[float]) -> bool:
    """Whether a run has gone astray for good: more of it would cost time and tell nothing."""
    return len(losses) >= LOST_STEPS and min(losses[-LOST_STEPS // 2 :]) > LOST_FACTOR * losses[0] > 0
