"""What an observed step, and probes after it, say of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from trainwright.adapters.torch.crossed_rows import crossed_targets
from trainwright.adapters.torch.training import TorchTraining
from trainwright.core.finding import Failure, Place
from trainwright.core.stage import Stage
from trainwright.seams.failures.blame import note_own, tolerated
from trainwright.seams.source.written import rebinding_place
from trainwright.seams.torch.loss import CLASS_LOSSES, KeptLoss, losses_of_rows
from trainwright.seams.torch.watch import StepRecord
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.loss import LossCall, LossFacts

# A loss that stays the same to the last bit when every weight moves by a tenth of its layer's spread
# does not depend on them.
_PERTURBED_BY = 0.1
# How many rows are given to the loss one by one to find those whose loss is not finite.
_MOST_SINGLE_ROWS = 64


def loss_facts(record: StepRecord, inputs: Mapping[str, Any], labels: Any = None) -> LossFacts | None:
    """What the observed step says of the loss; None if it was not reached.

    Args:
        inputs: the batch, by key.
        labels: its label tensor.
    """
    if record.failed_stage == Stage.FORWARD:
        return None
    shares = [*record.loss_shares, *[None] * len(record.loss_calls)]
    calls = tuple(replace(c, factor=f) for c, f in zip(record.loss_calls, shares))
    call = _main(calls)
    kept = record.kept_losses[calls.index(call)] if call else None
    classes = None
    if call and call.function in CLASS_LOSSES and len(call.inputs.shape) > 1:
        classes = call.inputs.shape[1]
    chance = math.log(classes) if classes and classes > 1 else None
    failure = record.failure if record.failed_stage == Stage.LOSS else None
    losses, row_labels = per_row(kept, labels)
    return LossFacts(
        failure=failure,
        function=call.function if call else "",
        call=call,
        calls=calls,
        value=record.loss,
        requires_grad=record.loss_tensor is None or record.loss_tensor.requires_grad,
        classes=classes,
        chance_nats=chance,
        expected=_expected(call, chance),
        at=(call.at if call else None) or record.loss_at,
        row_losses=losses,
        row_labels=row_labels,
        rebound_at=_rebound_at(record.failure),
        targets_are_labels=kept is not None and _same_labels(kept.targets, labels),
        renormalised=tuple(record.renormalised),
        token_offset=token_offset(kept, inputs.get("input_ids")),
    )


def _main(calls: tuple[LossCall, ...]) -> LossCall | None:
    """The call that raised, else the last classification that enters the loss that is minimised, else the last."""
    failed = [c for c in calls if c.failure]
    live = [c for c in calls if c.factor] or list(calls)
    classing = [c for c in live if c.function in CLASS_LOSSES]
    return next(iter([*failed[-1:], *classing[-1:], *live[-1:]]), None)


def _expected(call: LossCall | None, chance: float | None) -> float | None:
    """The loss of a model that knows nothing: uniform scores, or zero for every target."""
    if chance is not None:
        return chance
    if call and call.options.get("reduction", "mean") != "mean":
        return None
    if call and call.function.startswith("binary_cross_entropy"):
        return math.log(2)
    if call and call.function == "mse_loss" and call.targets.deviation is not None:
        return call.targets.deviation**2 + (call.targets.mean or 0.0) ** 2
    return None


def per_row(kept: KeptLoss | None, labels: Any = None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The loss of each row of a call, and each row's label where rows have one; empty where there are none.

    Args:
        labels: the batch's label tensor, used where the call's own targets are not one a row.
    """
    each = losses_of_rows(kept) if kept is not None else None
    if kept is None or each is None:
        return (), ()
    found = tuple(float(x) for x in each)
    for candidate in (kept.targets, labels):
        if isinstance(candidate, torch.Tensor) and candidate.numel() == len(found):
            return found, tuple(float(x) for x in candidate.detach().reshape(-1))
    return found, ()


def _same_labels(targets: torch.Tensor, labels: Any) -> bool:
    """Whether targets are a batch's labels: equal where there is one a row, else the same values."""
    if not isinstance(labels, torch.Tensor) or not labels.numel():
        return False
    found, given = targets.detach().reshape(-1).to(labels.device).double(), labels.reshape(-1).double()
    if found.numel() == given.numel() and torch.equal(found, given):
        return True
    return labels.dim() > 1 and bool(torch.isin(found[found != -100], given).all())


def token_offset(kept: KeptLoss | None, tokens: Any) -> int | None:
    """k where the targets at each position are the input tokens k further on; None where no one k fits.

    Targets may be flattened, and may be one or two positions shorter than the rows of tokens (rows, length).
    """
    if (
        kept is None
        or not isinstance(tokens, torch.Tensor)
        or tokens.dim() != 2
        or tokens.is_floating_point()
    ):
        return None
    rows, length = tokens.shape
    targets = kept.targets
    if (
        targets.is_floating_point()
        or targets.numel() % rows
        or length - targets.numel() // rows not in (0, 1, 2)
    ):
        return None
    targets, tokens = targets.reshape(rows, -1).to(tokens.device), tokens.detach()
    fitting = []
    for k in range(4):
        width = min(targets.shape[1], length - k)
        found, wanted = targets[:, :width], tokens[:, k : k + width]
        live = found != kept.options.get("ignore_index", -100)
        if bool(live.any()) and bool((found == wanted)[live].all()):
            fitting.append(k)
    return fitting[0] if len(fitting) == 1 else None


def _rebound_at(failure: Failure | None) -> Place | None:
    """Where the name that a failing call used got another value."""
    if failure is None or failure.where is None or "not callable" not in failure.message:
        return None
    return rebinding_place(failure.where)


def further_losses(
    loss: LossFacts,
    gradients: GradientFacts | None,
    training: TorchTraining,
    batches: Sequence[Any],
    record: StepRecord,
) -> LossFacts:
    """The facts with what more calls show: of single rows, of exchanged targets, with other weights, in a second step.

    The weights may be left changed.

    Args:
        record: of the observed step, whose batch was the first.
    """
    if loss.failure is not None or gradients is None:
        return loss
    first = batches[0]
    loss = replace(loss, crossed=crossed_targets(record.pairings, training, batches))
    if loss.value is not None and not math.isfinite(loss.value) and not loss.row_losses:
        loss = _one_by_one(loss, training, first)
    if gradients.failure is None:
        failure = training.second_step(batches[-1])
        loss = replace(loss, second_step=failure, rebound_at=loss.rebound_at or _rebound_at(failure))
    if not any(g.norm for g in gradients.gradients):
        with tolerated():  # a loss that cannot be had without gradients shows nothing
            same = unchanged_by_weights(training.model, lambda: training.loss_of(first))
            loss = replace(loss, unchanged_by_weights=same)
    return loss


def _one_by_one(loss: LossFacts, training: TorchTraining, batch: Any) -> LossFacts:
    count = training.rows_of(batch)
    rows = min(count, _MOST_SINGLE_ROWS)
    try:
        each = tuple(training.loss_of(training.chosen_rows(batch, [row])) for row in range(rows))
    except Exception as error:  # a model that cannot take one row (batch statistics) shows nothing here
        note_own(error)
        return loss
    label = training.label_of(batch)
    has_one = isinstance(label, torch.Tensor) and label.numel() == count
    labels = tuple(float(x) for x in label.reshape(-1)[:rows]) if has_one else ()
    return replace(loss, row_losses=each, row_labels=labels)


@torch.no_grad()
def unchanged_by_weights(model: nn.Module, value: Callable[[], float]) -> bool:
    """Whether a loss is the same to the last bit after all trained weights were moved; they are not put back.

    Args:
        value: the loss of one batch, with the same random numbers at each call.
    """
    before = value()
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.is_floating_point():
            spread = float(parameter.float().std(correction=0)) if parameter.numel() > 1 else 0.0
            parameter.add_(torch.randn_like(parameter) * (_PERTURBED_BY * (spread + 0.1)))
    return value() == before
