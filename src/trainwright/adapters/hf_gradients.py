"""What only further steps of a Trainer show of its gradients: left over, accumulated, kept across batches."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from trainwright.core.finding import Failure
from trainwright.core.repair import Repair
from trainwright.seams.snapshot import seed_everything
from trainwright.seams.torch import Observer
from trainwright.seams.torch_graph import GraphWatch, anomalies, kept_tensors, plain_lists
from trainwright.stages.gradients import GradientFacts

Batch = Mapping[str, Any]
# Three copies of all gradients are held at once; a model of more numbers is not taken that far (3.6 GB of float32).
MOST_NUMBERS = 300_000_000
# Micro-batches taken to measure what accumulation does; more of them show the same.
MOST_MICRO_BATCHES = 4
SECONDS = 10.0
# Two gradients that differ by less than this share of their size are the same but for rounding.
SAME_WITHIN = 1e-3


class Steps(Protocol):
    """What is needed of the training."""

    trainer: Any
    wrapped: Any

    @property
    def repairs(self) -> list[Repair]:
        """Those in force."""

    def step_on(self, batch: Batch, window: Sequence[Batch]) -> torch.Tensor:
        """Forward, loss and backward on one batch of a window; gradients are not cleared."""


def graph_facts(facts: GradientFacts, watch: GraphWatch, model: nn.Module, owners: Mapping[str, Any],
                places: Callable[[nn.Module], Any]) -> GradientFacts:  # fmt: skip
    """The facts with what was seen of the step's graph, right after the step."""
    named = dict(model.named_modules()) | dict(owners)
    registered = {id(p) for p in model.parameters()}
    return replace(
        facts,
        cuts=tuple(watch.record.cuts),
        in_place=tuple(watch.record.in_place),
        backwards=tuple(watch.record.backwards),
        user_loss=any(watch.record.loss_callers) or not watch.record.loss_callers,
        kept=tuple(kept_tensors(named)),
        plain_lists=tuple(plain_lists(model, watch.record.strays, places, registered)),
    )


def further_steps(facts: GradientFacts, steps: Steps, batches: Sequence[Batch]) -> GradientFacts:
    """The facts with what further steps show; nothing is updated, and what they raise is recorded.

    Args:
        batches: the first batches; at least one.
    """
    model = steps.trainer.model
    if facts.failure is not None or any(g.non_finite for g in facts.gradients):
        return _with_anomaly(facts, steps, batches[0])
    started = time.monotonic()
    if sum(p.numel() for p in model.parameters() if p.requires_grad) > MOST_NUMBERS or not facts.norm:
        return facts
    leftover, failure = _leftover(steps, batches[0], batches[1 % len(batches)])
    facts = replace(facts, leftover_ratio=leftover, second_failure=failure)
    taken = time.monotonic() - started
    if failure is not None or taken > SECONDS / 3:
        return facts
    with contextlib.suppress(
        Exception
    ):  # the same calls went through above; what fails here was made by the probe
        facts = replace(facts, batch_losses=tuple(_losses(steps, batches, SECONDS / 3)))
    if facts.accumulation > 1 and facts.leftover_ratio is not None:
        with contextlib.suppress(Exception):
            facts = replace(
                facts, **_accumulated(steps, batches, min(facts.accumulation, MOST_MICRO_BATCHES))
            )
    return facts


def _with_anomaly(facts: GradientFacts, steps: Steps, batch: Batch) -> GradientFacts:
    _clear(steps)
    seed_everything(1)
    with contextlib.suppress(Exception), anomalies() as found:  # it raised before, and does so again
        steps.step_on(batch, [batch])
    if not found:
        return facts
    return replace(facts, anomaly=found[0][0], anomaly_at=found[0][1])


def _leftover(steps: Steps, first: Batch, second: Batch) -> tuple[float | None, Failure | None]:
    """How much of the first batch's gradient is in that of the second step, as training goes from one to the other."""
    found: list[dict[str, torch.Tensor]] = []
    try:
        for batch, seed, clear in (
            (second, 11, _clear),
            (first, 12, _clear),
            (second, 11, _as_training_clears),
        ):
            clear(steps)
            with Observer(steps.wrapped, steps.repairs).catching() as record:
                found.append(_gradient(steps, batch, seed=seed))
            if record.failure is not None:
                return None, record.failure
    finally:
        _clear(steps)
    alone, before, after = found
    size = _dot(before, before)
    difference = {n: after[n] - alone[n] for n in after if n in alone}
    return (_dot(difference, before) / size if size else None), None


def _as_training_clears(steps: Steps) -> None:
    steps.wrapped.zero_grad()


def _accumulated(steps: Steps, batches: Sequence[Batch], count: int) -> dict[str, Any]:
    """The gradient of a window of micro-batches, as training accumulates it, against those of each by itself."""
    window = [batches[i % len(batches)] for i in range(count)]
    trainer, args = steps.trainer, steps.trainer.args
    given = args.gradient_accumulation_steps
    with Observer(steps.wrapped, steps.repairs):
        alone = []
        object.__setattr__(args, "gradient_accumulation_steps", 1)
        for i, batch in enumerate(window):
            _clear(steps)
            alone.append(_gradient(steps, batch, seed=20 + i))
        _clear(steps)
        object.__setattr__(args, "gradient_accumulation_steps", count)
        trainer.current_gradient_accumulation_steps = count
        try:
            for i, batch in enumerate(window):
                trainer.accelerator.gradient_state._set_sync_gradients(i == count - 1)
                together = _gradient(steps, batch, seed=20 + i, window=window)
        finally:
            trainer.current_gradient_accumulation_steps = 1
            trainer.accelerator.gradient_state._set_sync_gradients(True)
            object.__setattr__(args, "gradient_accumulation_steps", given)
            _clear(steps)
    products = np.array([[_dot(a, b) for b in alone] for a in alone])
    onto = np.array([_dot(a, together) for a in alone])
    shares = np.linalg.lstsq(products, onto, rcond=1e-10)[0]
    last = alone[-1]
    scale = _dot(last, together) / _dot(last, last)
    rest = {n: together[n] - scale * last[n] for n in together if n in last}
    others = {n: alone[0][n] - last[n] for n in alone[0] if n in last}
    return {
        "accumulated_share": float(shares.sum()),
        "accumulated_batches": count,
        "only_last": _dot(rest, rest) < SAME_WITHIN**2 * _dot(together, together)
        and _dot(others, others) > 100 * SAME_WITHIN**2 * _dot(last, last),
    }


def _losses(steps: Steps, batches: Sequence[Batch], seconds: float) -> list[float]:
    """The loss of each batch at the same weights, for as long as it may take."""
    found: list[float] = []
    started = time.monotonic()
    with Observer(steps.wrapped, steps.repairs):
        for batch in batches:
            seed_everything(1)
            found.append(float(steps.step_on(batch, [batch]).detach().float().mean()))
            if time.monotonic() - started > seconds:
                break
    _clear(steps)
    return found


def _clear(steps: Steps) -> None:
    for parameter in steps.trainer.model.parameters():
        parameter.grad = None


def _gradient(
    steps: Steps, batch: Batch, *, seed: int, window: Sequence[Batch] | None = None
) -> dict[str, torch.Tensor]:
    """The gradient that is there after one more step, by parameter."""
    seed_everything(seed)
    with GraphWatch(steps.trainer.model, steps.repairs):
        steps.step_on(batch, window or [batch])
    return {
        n: (p.grad.to_dense() if p.grad.is_sparse else p.grad).detach().clone()
        for n, p in steps.trainer.model.named_parameters()
        if p.grad is not None
    }


def _dot(left: Mapping[str, torch.Tensor], right: Mapping[str, torch.Tensor]) -> float:
    return sum(float((left[n].double() * right[n].double()).sum()) for n in left if n in right)
