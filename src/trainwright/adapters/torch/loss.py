"""Facts about the loss from an observed step and later probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from trainwright.core import Stage
from trainwright.probes import losses
from trainwright.seams.torch.loss import KeptLoss, losses_of_rows
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages import IGNORED_LABEL, LossFacts, LossTerm
from trainwright.tensors.torch import objects as tensors


def loss_facts(record: StepRecord, inputs: Mapping[str, Any], labels: Any = None) -> LossFacts | None:
    """The facts of the loss from the observed step; None if it was not reached.

    Args:
        inputs: the batch, by key.
        labels: its label tensor.
    """
    if record.failed_stage == Stage.FORWARD:
        return None
    shares = [*record.loss_shares, *[None] * len(record.loss_calls)]
    scale = _scale(record)
    calls = tuple(replace(c, factor=f and scale * f) for c, f in zip(record.loss_calls, shares))
    call = losses.main_call(calls)
    kept = record.kept_losses[calls.index(call)] if call else None
    failure = record.failure if record.failed_stage == Stage.LOSS else None
    of_rows, labels_of_rows = per_row(kept, labels)
    return LossFacts(
        failure=failure,
        **losses.common_facts(calls, 1),
        value=record.loss,
        terms=_terms(record),
        at=(call.at if call else None) or record.loss_at,
        row_losses=of_rows,
        row_labels=labels_of_rows,
        targets_are_labels=kept is not None and _same_labels(kept.targets, labels),
        renormalised=tuple(record.renormalised),
        token_offset=token_offset(kept, _tokens(inputs, labels)),
    )


def _scale(record: StepRecord) -> float:
    """By what the loss differs from what backward was called on last: that may be divided by micro-batches, or scaled."""
    minimised = record.minimised[-1] if record.minimised else 0.0
    return record.loss / minimised if record.loss and minimised else 1.0


def _terms(record: StepRecord) -> tuple[LossTerm, ...]:
    """The terms of the loss, in its unit: what backward is called on may be divided by micro-batches, or scaled."""
    total = sum(one.value for one in record.loss_terms)
    if record.loss is None or not total:
        return ()
    scale = record.loss / total
    return tuple(replace(one, value=scale * one.value, factor=scale * one.factor) for one in record.loss_terms)


def per_row(kept: KeptLoss | None, labels: Any = None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The loss of each row of a call, and each row's label if rows have one; empty if there are none.

    Args:
        labels: the batch's label tensor, used if the call's own targets are not one per row.
    """
    each = losses_of_rows(kept) if kept is not None else None
    if kept is None or each is None:
        return (), ()
    arrays = (tensors.to_numpy(t) if isinstance(t, torch.Tensor) else None for t in (kept.targets, labels))
    return tuple(float(x) for x in each), losses.row_labels(len(each), *arrays)


def _same_labels(targets: torch.Tensor, labels: Any) -> bool:
    """Whether targets are a batch's labels: equal if there is one per row, otherwise the same values."""
    if not isinstance(labels, torch.Tensor) or not labels.numel():
        return False
    found, given = targets.detach().reshape(-1).to(labels.device).double(), labels.reshape(-1).double()
    if found.numel() == given.numel() and torch.equal(found, given):
        return True
    return labels.dim() > 1 and bool(torch.isin(found[found != IGNORED_LABEL], given).all())


def _tokens(inputs: Mapping[str, Any], labels: Any) -> Any:
    """The token ids among a batch's tensors: those named input_ids, or the first rows of whole numbers but the labels."""
    rows = (v for v in inputs.values() if isinstance(v, torch.Tensor) and v.dim() == 2 and v.dtype == torch.int64)
    return inputs.get("input_ids", next((v for v in rows if v is not labels), None))


def token_offset(kept: KeptLoss | None, tokens: Any) -> int | None:
    """k if the targets at each position are the input tokens k positions ahead; None if no single k fits.

    Targets may be flattened, and may be one or two positions shorter than the rows of tokens (rows, length).
    """
    if kept is None or not isinstance(tokens, torch.Tensor) or tokens.dim() != 2 or tokens.is_floating_point():
        return None
    rows, length = tokens.shape
    targets = kept.targets
    if targets.is_floating_point() or targets.numel() % rows or length - targets.numel() // rows not in (0, 1, 2):
        return None
    targets, tokens = targets.reshape(rows, -1).to(tokens.device), tokens.detach()
    fitting = []
    for k in range(4):
        width = min(targets.shape[1], length - k)
        found, wanted = targets[:, :width], tokens[:, k : k + width]
        live = found != kept.options.get("ignore_index", IGNORED_LABEL)
        if bool(live.any()) and bool((found == wanted)[live].all()):
            fitting.append(k)
    return fitting[0] if len(fitting) == 1 else None
