"""Facts about gradients that need further steps: left over, accumulated, kept across batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.seams.torch.gates import GateLog
from trainwright.seams.torch.graph import GraphWatch, kept_tensors, plain_lists
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages import CutOff, GradientFacts
from trainwright.tensors.torch import objects as tensors

Gradient = dict[str, np.ndarray]
# Numbers of a parameter's gradient that are kept: products of two gradients need no more.
MOST_COPIED = 1_000_000
# Factors of terms that differ by less than this share are one factor, computed in floating point.
SAME_SHARE = 1e-3


def graph_facts(
    facts: GradientFacts,
    watch: GraphWatch,
    model: nn.Module,
    owners: Mapping[str, Any],
    places: Callable[[nn.Module], Any],
) -> GradientFacts:
    """The facts with what was observed of the step's graph, right after the step."""
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


def gradients_now(model: nn.Module) -> Gradient:
    """A copy of the current gradients, by parameter; of large ones a sample with the same products on average."""
    return {n: _copied(p.grad) for n, p in model.named_parameters() if p.grad is not None}


def _copied(gradient: torch.Tensor) -> np.ndarray:
    dense = gradient.to_dense() if gradient.is_sparse else gradient
    step = dense.numel() // MOST_COPIED + 1
    if step == 1:
        return np.array(tensors.to_numpy(dense))
    return np.array(tensors.to_numpy(dense.reshape(-1)[::step])) * np.float32(step**0.5)


def cuts_of_their_step(facts: GradientFacts, model: nn.Module, passed: GateLog) -> tuple[CutOff, ...]:
    """The cuts of a step with several updates, without those that do not affect the update they belong to.

    A generator's samples are rightly detached in its critic's loss: only the cuts between the previous update and that
    of the optimizer with these parameters count.
    """
    firsts = [passed.stepped.index(optimizer) for optimizer in passed.optimizers]
    if len(firsts) < 2:
        return facts.cuts
    names = {id(p): n for n, p in model.named_parameters()}
    lost = {g.name for g in facts.without}
    found = []
    for optimizer, first in zip(passed.optimizers, firsts):
        held = {names.get(id(p), "") for g in optimizer.param_groups for p in g["params"]} & lost
        own = [c for c in facts.cuts if held & set(c.upstream) and c.updates_before <= first]
        within = [c for c in own if c.updates_before == first]
        within.sort(key=lambda c: c.operation == "item()")  # a loss that is only displayed is not a cause
        found += [replace(c, upstream=tuple(n for n in c.upstream if n in held)) for c in within or own]
    return tuple(found)


def share_of_loss(record: StepRecord) -> tuple[float | None, bool]:
    """The factor with which the loss function's value entered the minimized loss: 1/k if it was divided by k.

    Also whether it is certain: terms with different factors have weights of their own.
    """
    shares = [s for s in record.loss_shares if s]
    if shares:
        return shares[-1], max(shares) - min(shares) <= SAME_SHARE * max(map(abs, shares))
    value = record.kept_losses[-1].value if record.kept_losses else None
    whole = float(value.detach()) if isinstance(value, torch.Tensor) and value.numel() == 1 else 0.0
    return (record.minimised[0] / whole if whole and record.minimised else None), True
