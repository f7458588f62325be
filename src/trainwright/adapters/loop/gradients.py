"""The gradients with which a training loop updates, as it leaves, adds and clears them itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.gradients import clear, gradients_now
from trainwright.adapters.torch.training import Gradient, Window
from trainwright.seams.torch.gates import Passed
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages.gradients import CutOff, GradientFacts

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining


def step_as_training(training: LoopTraining, turn: Turn, *, cleared: bool) -> Gradient:
    """The gradient with which the optimizer would step after this batch; what the body raises passes."""
    if cleared:
        clear(training.model)
    training.began_clear = None
    by_hand = not training.parts.optimizers
    weights = [p.detach().clone() for p in training.model.parameters()] if by_hand else []
    for _ in range(training.rounds):
        record, passed = training.observe(turn, 0)
        if record.error is not None:
            raise record.error
        if training.began_clear is None:
            training.began_clear = passed.began_clear
        gradient = _held(training, gradients_now(training.model))
        training.as_left()
        if passed.steps:
            break
    moved = any(not torch.equal(w, p) for w, p in zip(weights, training.model.parameters()))
    if by_hand and not moved:  # nothing follows the gradients: that they add up is not the fault
        training.began_clear = True
    return gradient


def cuts_of_their_step(facts: GradientFacts, model: nn.Module, passed: Passed) -> tuple[CutOff, ...]:
    """The cuts of a step with several updates, without those that keep nothing from the update that it would be for.

    A generator's samples are rightly cut off in its critic's loss: what counts are the cuts between the update before
    and that of the optimizer that holds the parameters.
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
        within.sort(key=lambda c: c.operation == "item()")  # a loss that is only shown is no cause
        found += [replace(c, upstream=tuple(n for n in c.upstream if n in held)) for c in within or own]
    return tuple(found)


def _held(training: LoopTraining, gradient: Gradient) -> Gradient:
    """What of a gradient the optimizers step with; nobody clears or uses the rest. All of it where updates are made by hand."""
    if not training.parts.optimizers:
        return gradient
    held = {id(p) for o in training.parts.optimizers for g in o.param_groups for p in g["params"]}
    names = {n for n, p in training.model.named_parameters() if id(p) in held}
    return {n: g for n, g in gradient.items() if n in names}


def accumulate(training: LoopTraining, turns: Sequence[Turn]) -> Window | None:
    """What the loop's own accumulation over these micro-batches does."""
    alone: list[Gradient] = []
    together = None
    for number, turn in enumerate(turns):
        training.reset()
        clear(training.model)
        record, _ = training.observe(turn, number, detail=True)
        divisor = _share_of_loss(record)
        if record.error is not None or not divisor:
            return None
        alone.append({n: g / divisor for n, g in gradients_now(training.model).items()})
    training.reset()
    clear(training.model)
    for number in range(training.rounds):
        record, passed = training.observe(turns[number % len(turns)], number % len(turns))
        if record.error is not None:
            return None
        if passed.steps:
            together = gradients_now(training.model)
        training.as_left()
    training.reset()
    if together is None:
        return None
    return Window({n: g * len(turns) / training.window for n, g in together.items()}, alone)


def _share_of_loss(record: StepRecord) -> float | None:
    """By what factor the loss function's value entered what was minimized: 1/k where it was divided by k."""
    shares = [s for s in record.loss_shares if s]
    if shares:
        return shares[-1]
    value = record.kept_losses[-1].value if record.kept_losses else None
    whole = float(value.detach()) if isinstance(value, torch.Tensor) and value.numel() == 1 else 0.0
    return record.minimised[0] / whole if whole and record.minimised else None
