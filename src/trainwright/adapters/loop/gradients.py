"""The gradients with which a training loop updates, including how it accumulates and clears them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from trainwright.adapters.loop.body_run import rounds_to_update
from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.gradients import clear, gradients_now
from trainwright.adapters.torch.training import Gradient, Window
from trainwright.seams.torch.gates import Passed
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages.gradients import STEP, CutOff, GradientChange, GradientFacts
from trainwright.tensors.torch import objects as tensors

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining

# Longer windows are not run once more.
MOST_ROUNDS = 8
# Factors of terms that differ by less than this share are one factor, computed in floating point.
SAME_SHARE = 1e-3


def step_as_training(training: LoopTraining, turn: Turn, *, cleared: bool) -> Gradient:
    """The gradient with which the optimizer would step after this batch; the body's exceptions propagate.

    It is empty if an optimizer that has been seen to step does not: what it would step with is then unknown.
    """
    if cleared:
        clear(training.model)
    training.began_clear = None
    by_hand = not training.parts.passed.steps
    weights = [p.detach().clone() for p in training.model.parameters()] if by_hand else []
    steps = 0
    for _ in range(rounds_to_update(training)):
        record, passed = training.observe(turn, 0)
        if record.error is not None:
            raise record.error
        if training.began_clear is None:
            training.began_clear = passed.began_clear
        gradient = _held(training, gradients_now(training.model))
        training.as_left()
        steps += passed.steps
        if steps:
            break
    moved = any(not torch.equal(w, p) for w, p in zip(weights, training.model.parameters()))
    if by_hand and not moved:  # nothing uses the gradients, so their accumulation is not the fault
        training.began_clear = True
    return gradient if steps or by_hand else {}


def cuts_of_their_step(facts: GradientFacts, model: nn.Module, passed: Passed) -> tuple[CutOff, ...]:
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


def _held(training: LoopTraining, gradient: Gradient) -> Gradient:
    """The part of a gradient that the optimizers step with; all of it if updates are made by hand."""
    if not training.parts.optimizers:
        return gradient
    held = {id(p) for o in training.parts.optimizers for g in o.param_groups for p in g["params"]}
    names = {n for n, p in training.model.named_parameters() if id(p) in held}
    return {n: g for n, g in gradient.items() if n in names}


def changes_of_window(training: LoopTraining, turns: Sequence[Turn]) -> tuple[GradientChange, ...]:
    """What happens to the gradient from one update to the next."""
    if training.rounds > MOST_ROUNDS:
        return ()
    found: list[GradientChange] = []
    for number in range(training.rounds):
        record, passed = training.observe(turns[number % len(turns)], number, detail=True)
        if record.error is not None:
            return ()
        found += passed.changes
        training.as_left()
        if passed.steps:
            break
    steps = [i for i, change in enumerate(found) if change.kind == STEP]
    return tuple(found[: steps[0] + 1]) if steps else tuple(found)


def accumulate(training: LoopTraining, turns: Sequence[Turn]) -> Window | None:
    """What the loop's own accumulation over these micro-batches does."""
    alone: list[Gradient] = []
    together: Gradient | None = None
    reached: Gradient = {}
    scale_known = True
    for number, turn in enumerate(turns):
        training.reset()
        clear(training.model)
        record, _ = training.observe(turn, number, detail=True)
        divisor, certain = _share_of_loss(record)
        scale_known &= certain
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
            reached = _reached(training, passed)
        training.as_left()
    training.reset()
    if together is None:
        return None
    return Window(together, alone, reached, count=training.window, scale_known=scale_known)


def _reached(training: LoopTraining, passed: Passed) -> Gradient:
    """What the last backward pass left."""
    found = {n: passed.reached.get(id(p)) for n, p in training.model.named_parameters()}
    return {n: tensors.to_numpy(g.to_dense() if g.is_sparse else g) for n, g in found.items() if g is not None}


def _share_of_loss(record: StepRecord) -> tuple[float | None, bool]:
    """The factor with which the loss function's value entered the minimized loss: 1/k if it was divided by k.

    Also whether it is certain: terms with different factors have weights of their own.
    """
    shares = [s for s in record.loss_shares if s]
    if shares:
        return shares[-1], max(shares) - min(shares) <= SAME_SHARE * max(map(abs, shares))
    value = record.kept_losses[-1].value if record.kept_losses else None
    whole = float(value.detach()) if isinstance(value, torch.Tensor) and value.numel() == 1 else 0.0
    return (record.minimised[0] / whole if whole and record.minimised else None), True
