"""Facts about gradients that need further steps: left over, accumulated, kept across batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.adapters.torch.optimizer import update_growth
from trainwright.adapters.torch.training import Gradient, TorchTraining
from trainwright.core.finding import Failure
from trainwright.probes.gradients import accumulated, share_added
from trainwright.seams.failures.blame import failure_of, tolerated
from trainwright.seams.listening.torch_patches import unclipped
from trainwright.seams.torch.gates import Passed
from trainwright.seams.torch.graph import GraphWatch, anomalies, kept_tensors, plain_lists
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages.gradients import CutOff, GradientFacts
from trainwright.tensors.torch import objects as tensors
from trainwright.timing import now

# Each step takes seconds where there are more numbers than this.
MOST_NUMBERS = 300_000_000
# Numbers of a parameter's gradient that are kept: products of two gradients need no more.
MOST_COPIED = 1_000_000
# Number of micro-batches for measuring accumulation; more would show the same.
MOST_MICRO_BATCHES = 4
SECONDS = 10.0
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


def further_steps(facts: GradientFacts, steps: TorchTraining, batches: Sequence[Any]) -> GradientFacts:
    """The facts with the results of further steps; nothing is updated, and exceptions are recorded.

    Args:
        batches: the first batches; at least one.
    """
    model = steps.model
    if facts.failure is not None or any(g.non_finite for g in facts.gradients):
        return _with_anomaly(facts, steps, batches[0])
    started = now()
    if sum(p.numel() for p in model.parameters() if p.requires_grad) > MOST_NUMBERS or not facts.norm:
        return facts
    with unclipped():
        leftover, failure = _leftover(steps, batches[0], batches[1 % len(batches)])
    facts = replace(facts, leftover_ratio=leftover, second_failure=failure)
    taken = now() - started
    if failure is not None or taken > SECONDS / 3:
        return facts
    if facts.accumulation > 1 and facts.leftover_ratio is not None:
        with tolerated(), unclipped():  # the same calls succeeded above, so a failure comes from the probe
            count = min(facts.accumulation, MOST_MICRO_BATCHES)
            window = steps.accumulate([batches[i % len(batches)] for i in range(count)])
            if window is not None:
                found = accumulated(window.together, window.alone, window.reached, count=window.count)
                facts = replace(facts, **found if window.scale_known else {**found, "accumulated_share": None})
    if facts.accumulation > 1:
        with tolerated():
            facts = replace(facts, update_growth=update_growth(steps.trained_with(), max(2, facts.accumulation)))
    return facts


def _with_anomaly(facts: GradientFacts, steps: TorchTraining, batch: Any) -> GradientFacts:
    with tolerated(), anomalies() as found:  # it raised before and does so again
        steps.step_as_training(batch, seed=1, cleared=True)
    if not found:
        return facts
    return replace(facts, anomaly=found[0][0], anomaly_at=found[0][1])


def _leftover(steps: TorchTraining, first: Any, second: Any) -> tuple[float | None, Failure | None]:
    """How much of the first batch's gradient remains in the second step's, as training goes from one to the other."""
    found: list[Gradient] = []
    started = now()
    try:
        for batch, seed, cleared in ((second, 11, True), (first, 12, True), (second, 11, False)):
            found.append(steps.step_as_training(batch, seed=seed, cleared=cleared))
            if len(found) == 1 and now() - started > SECONDS / 3:
                return None, None
    except Exception as error:  # the user's step raised, which is a finding
        return None, failure_of(error)
    finally:
        clear(steps.model)
    if steps.began_clear:  # a difference then comes from state that the model keeps
        return 0.0, None
    alone, before, after = found
    return share_added(alone, after, before), None


def clear(model: nn.Module) -> None:
    """Remove all gradients."""
    for parameter in model.parameters():
        parameter.grad = None


def gradients_now(model: nn.Module) -> Gradient:
    """A copy of the current gradients, by parameter; of large ones a sample with the same products on average."""
    return {n: _copied(p.grad) for n, p in model.named_parameters() if p.grad is not None}


def _copied(gradient: torch.Tensor) -> np.ndarray:
    dense = gradient.to_dense() if gradient.is_sparse else gradient
    step = dense.numel() // MOST_COPIED + 1
    if step == 1:
        return np.array(tensors.to_numpy(dense))
    return np.array(tensors.to_numpy(dense.reshape(-1)[::step])) * np.float32(step**0.5)


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
