"""The facts of a real step's forward pass, loss and gradients, and what a second step adds to them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from trainwright.adapters.torch import forward_probes
from trainwright.adapters.torch.called_model import CalledModel, label_name, rows_of
from trainwright.adapters.torch.gradients import cuts_of_their_step, gradients_now, graph_facts, share_of_loss
from trainwright.adapters.torch.loss import loss_facts
from trainwright.adapters.torch.optimizer import update_growth
from trainwright.adapters.torch.step_facts import forward_facts, gradient_facts
from trainwright.adapters.torch.vocabulary import vocabulary_of
from trainwright.core import Facts, FactsByKind
from trainwright.frameworks.label_names import ARGUMENTS
from trainwright.look.state import Look, Measured, Trainings
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import seen
from trainwright.seams.torch.gates import cleared_between, clipped_early, unscaled_late
from trainwright.seams.torch.step_record import StepRecord, scores_of
from trainwright.stages import ForwardFacts, GradientFacts, LossFacts
from trainwright.stages.gradients import BY_HAND, STEP
from trainwright.tensors.items import length
from trainwright.tensors.torch.objects import held_by

# Steps that take longer are not probed: a probe calls the model a dozen times.
SLOW_SECONDS = 1.5
# Gradients divided by a number are so many times smaller, up to rounding.
SAME_DIVISOR = 1e-3


def set_fields(facts: FactsByKind, kind: type[Facts], **values: Any) -> None:
    """Set fields of the facts of a kind, if they were measured."""
    if (known := facts.get(kind)) is not None:
        facts[kind] = replace(cast("Any", known), **values)


def add_other_batch(measured: Measured, facts: FactsByKind, inputs: Mapping[str, Any]) -> None:
    """The model is called with a second batch: its answers for both, with the weights between both."""
    if measured.probe is None or ForwardFacts not in facts:
        return
    with tolerated():
        probe = replace(measured.probe, other={k: v for k, v in inputs.items() if k in measured.probe.inputs})
        if (base := probe.answer(probe.inputs)) is not None:
            set_fields(facts, ForwardFacts, **forward_probes.answer_other_inputs(probe, base, rows_of(probe.inputs)))


def measure_first_step(look: Look, looking: Trainings) -> None:
    """The facts of the forward pass, the loss and the gradients."""
    record, passed = look.step, look.passed
    are_made_up = record.targets is not None and record.targets.numel() > 1 and len(record.targets.unique()) == 1
    if len(passed.ways) > 1 or are_made_up:
        look.draws = 1  # terms of one loss, as of a GAN's discriminator, are no micro-batches
    if record.failure is None or record.minimised:
        if record.minimised:
            record.loss = record.minimised[0] if passed.steps > 1 else sum(record.minimised)
        elif record.loss_tensor is not None:
            record.loss = float(record.loss_tensor.detach())
    view, key = dict(look.inputs), label_name(look.inputs, record.targets)
    if key is None and record.targets is not None:
        key, view["labels"] = "labels", record.targets
    optimizers = passed.optimizers or looking.optimizers.list_live()
    measured = Measured(passed=passed, step=record, optimizers=optimizers, view=view, key=key, model=look.model)
    look.measured, look.broadcasts = measured, tuple(record.broadcasts)
    _measure_forward(look, looking, measured)
    loss = loss_facts(record, view, view.get(key or ""))
    if loss is not None:
        look.facts[LossFacts] = loss
    _measure_gradients(look, looking, measured)
    _measure_influence(look.facts, measured)


def _measure_forward(look: Look, looking: Trainings, measured: Measured) -> None:
    loader, model = look.loader, look.model
    is_alone = len(look.roots) == 1 and bool(look.inputs) and time.monotonic() - look.began < SLOW_SECONDS
    if is_alone:
        rows, size = length(getattr(loader, "dataset", None)), getattr(loader, "batch_size", None)
        left = rows % size if rows and size and not loader.drop_last else 0
        measured.probe = CalledModel(
            model=look.roots[0],
            inputs=dict(look.inputs),
            vocabulary=vocabulary_of(model),
            pad_id=getattr(looking.kind.find_tokenizer(look.scope), "pad_token_id", None),
            label_keys=tuple(dict.fromkeys([*([measured.key] if measured.key else []), *ARGUMENTS])),
            met_rows={"the last training batch": (left, True)} if left else {},
            batch_size=size or 0,
        )
    known = {name: seen().is_fresh(model, name, parameter) for name, parameter in model.named_parameters()}
    fresh = None if None in known.values() else frozenset(name for name, is_fresh in known.items() if is_fresh)
    facts = forward_facts(measured.step, model, measured.probe, fresh, seen().frozen_at)
    look.facts[ForwardFacts] = facts
    named = dict(model.named_parameters())
    measured.suspects = {p.name: named[p.name] for p in facts.parameters if p.identical_rows and p.trainable}


def _measure_gradients(look: Look, looking: Trainings, measured: Measured) -> None:
    record, passed, model = measured.step, measured.passed, look.model
    kept = [(parameter, parameter.grad) for parameter in model.parameters()]
    for parameter, _ in kept:  # as backward left them, before anything was clipped or cleared
        parameter.grad = passed.reached.get(id(parameter), parameter.grad)
    try:
        facts = gradient_facts(record, model, seen().modules.get, looking.kind.largest_norm, look.draws)
        if facts is None or look.graph is None:
            return
        owners = looking.kind.list_owners(look.scope)
        facts = graph_facts(facts, look.graph, model, owners, seen().modules.get)
    finally:
        for parameter, gradient in kept:
            parameter.grad = gradient
    waiting = looking.optimizers.list_held() - held_by(*passed.optimizers)
    names = {name for name, p in model.named_parameters() if id(p) in waiting} if passed.optimizers else set()
    facts = replace(facts, gradients=tuple(g for g in facts.gradients if g.name not in names))
    passes, at = cleared_between(passed)
    one, is_certain = share_of_loss(record)
    share = look.draws * one if look.draws > 1 and one and is_certain else None
    steps = [index for index, made in enumerate(passed.changes) if made.kind == STEP]
    changes = passed.changes[: steps[0] + 1] if steps else passed.changes
    kinds = [made.kind for made in changes if made.kind in ("backward", "cleared")]
    is_last_alone = look.draws > 1 and kinds[-2:] == ["cleared", "backward"] and "backward" in kinds[:-2]
    # The script itself divides the gradients by the number of batches.
    is_divided = any(
        made.kind == BY_HAND and math.isclose(made.after * look.draws, made.before, rel_tol=SAME_DIVISOR)
        for made in changes
    )
    look.facts[GradientFacts] = replace(
        facts,
        cuts=cuts_of_their_step(facts, model, passed),
        wiped=tuple(name for name, p in model.named_parameters() if id(p) in passed.wiped),
        wiped_passes=passes,
        wiped_at=passed.wiped_at or at,
        clipped_early=clipped_early(changes),
        unscaled_late=unscaled_late(changes),
        accumulated_share=None if is_last_alone or is_divided else share,
        only_last=(is_last_alone and passed.as_reached) or None,
        accumulated_batches=look.draws,
        update_growth=update_growth(passed.optimizers[0], max(2, look.draws)) if passed.optimizers else None,
    )
    measured.gradients = {name: gradient.copy() for name, gradient in gradients_now(model).items()}


def _measure_influence(facts: FactsByKind, measured: Measured) -> None:
    """Whether a loss without any gradient stays what it is when the weights move."""
    gradients = facts.get(GradientFacts)
    if measured.probe is None or not isinstance(gradients, GradientFacts) or any(g.norm for g in gradients.gradients):
        return
    with tolerated():
        before = _replay_loss(measured.step, measured.probe)
        with measured.probe.moved_weights():
            is_unchanged = before is not None and _replay_loss(measured.step, measured.probe) == before
        set_fields(facts, LossFacts, unchanged_by_weights=is_unchanged)


def _replay_loss(record: StepRecord, probe: CalledModel) -> float | None:
    """The loss of the recorded calls, made again: the model's own, or its scores in the recorded loss call."""
    output = probe.call(probe.inputs, training=True, seed=1)
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if own is None and record.kept_losses and (scores := scores_of(output)) is not None:
        kept = record.kept_losses[0]
        own = getattr(torch.nn.functional, kept.function)(scores, kept.targets, **kept.options)
    return float(own) if own is not None else None


def keep_left_gradients(measured: Measured) -> None:
    """Before a backward pass of the second update: keep what is left of gradients; of several optimizers each has a moment of
    its own."""
    measured.left = _gradients_held(measured) if len(measured.optimizers) == 1 else None


def is_left_known(facts: FactsByKind) -> bool:
    """Whether it is known what the second update's gradients hold of the first's."""
    gradients = facts.get(GradientFacts)
    return not isinstance(gradients, GradientFacts) or gradients.leftover_ratio is not None


def _gradients_held(measured: Measured) -> dict[str, Any]:
    held = held_by(measured.optimizers[0])
    names = {name for name, parameter in measured.model.named_parameters() if id(parameter) in held}
    return {name: gradient for name, gradient in gradients_now(measured.model).items() if name in names}


def add_second_step(facts: FactsByKind, measured: Measured) -> None:
    """Behind it: how much of the first gradient it has added to. One that adds nothing to them is another optimizer's."""
    left, measured.left = measured.left, None
    if left is None:
        return
    now = _gradients_held(measured)
    if now.keys() == left.keys() and all(np.array_equal(now[name], left[name]) for name in now):
        return
    both = [(left[name].ravel(), before.ravel()) for name, before in measured.gradients.items() if name in left]
    norm = sum(float((before * before).sum()) for _, before in both)
    ratio = sum(float((after * before).sum()) for after, before in both) / norm if norm else 0.0
    set_fields(facts, GradientFacts, leftover_ratio=ratio)
