"""What a call of torch's loss functions was given and gave, in numbers; and its loss row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from trainwright.stages.loss import LossCall
from trainwright.tensors.torch import objects as tensors

LOSSES: dict[Callable[..., Any], str] = {
    getattr(F, name): name
    for name in (
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "kl_div",
        "poisson_nll_loss",
        "gaussian_nll_loss",
        "hinge_embedding_loss",
        "margin_ranking_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "multilabel_soft_margin_loss",
        "soft_margin_loss",
        "cosine_embedding_loss",
        "triplet_margin_loss",
        "ctc_loss",
    )
}
CLASS_LOSSES = ("cross_entropy", "nll_loss")
ELEMENTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
               "binary_cross_entropy_with_logits")  # fmt: skip
# Distinct targets are sought among this many.
_SEARCHED = 100_000
_MOST_DISTINCT = 32
# Of larger scores (rows of tokens over a vocabulary) the first rows are looked at, so that memory is not doubled.
_LARGEST_SCORES = 16_000_000
# The sum of a row of float32 probabilities over a vocabulary of 100,000 is within this of one.
_SUM_WITHIN = 1e-3


@dataclass(kw_only=True)
class KeptLoss:
    """The tensors of one loss call, for what is measured once the step is over."""

    function: str
    scores: torch.Tensor
    targets: torch.Tensor
    options: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None


@torch.no_grad()
def measure_call(kept: KeptLoss, **more: Any) -> LossCall:
    """The facts of one call; `more` are those that the numbers do not show (place, failure, activation)."""
    scores, targets = _first_rows(kept.scores).float(), kept.targets.detach()
    ignored = kept.options.get("ignore_index", -100)
    live = targets if targets.is_floating_point() else targets[targets != ignored]
    distinct = torch.unique(live.reshape(-1)[:_SEARCHED])
    unit = bool(((scores >= 0) & (scores <= 1)).all()) if scores.numel() else False
    axis = -1 if kept.function == "ctc_loss" else 1  # of the classes
    wide = scores.dim() > 1 and scores.shape[axis] > 1
    bounds = [int(x) for x in (live.min(), live.max()) if torch.isfinite(x)] if live.numel() else []
    tall = wide and axis == 1 and 1 < len(scores) != scores.shape[1] and len(scores) == len(kept.scores)
    within = _rounding(kept.scores)
    rows_sum = unit and wide and bool((scores.sum(dim=axis) - 1).abs().max() < within)
    rows_log = wide and bool(scores.logsumexp(dim=axis).abs().max() < within)
    several = _rows_of_several_labels(kept.scores, targets)
    return LossCall(
        function=kept.function,
        inputs=tensors.facts(kept.scores),
        targets=tensors.facts(targets),
        options=_plain(kept.options),
        value=float(kept.value.detach().float().mean()) if isinstance(kept.value, torch.Tensor) else None,
        rows_sum_to_one=rows_sum,
        log_normalised=rows_log,
        columns_sum_to_one=unit and tall and not rows_sum and _is_one(scores.sum(dim=0), within),
        columns_log_normalised=tall and not rows_log and _is_one(scores.logsumexp(dim=0).exp(), within),
        in_unit_range=unit,
        smallest_target=bounds[0] if len(bounds) == 2 else None,
        largest_target=bounds[1] if len(bounds) == 2 else None,
        target_values=tuple(float(x) for x in distinct) if distinct.numel() <= _MOST_DISTINCT else (),
        targets_one_hot=is_one_hot(kept.scores, targets),
        rows_of_several_labels=several,
        aligned_value=_aligned_value(kept),
        plain_value=_plain_value(kept),
        **more,
    )


def _is_one(sums: torch.Tensor, within: float) -> bool:
    return bool((sums - 1).abs().max() < within)


def _rounding(scores: torch.Tensor) -> float:
    """How far from one a row of probabilities may sum up to: in bfloat16 each is rounded to a two hundred and fiftieth."""
    return max(_SUM_WITHIN, torch.finfo(scores.dtype).eps) if scores.is_floating_point() else _SUM_WITHIN


def _first_rows(scores: torch.Tensor) -> torch.Tensor:
    """The scores, or as many of their first rows as are looked at."""
    seen = scores.detach()
    if seen.dim() < 2 or seen.numel() <= _LARGEST_SCORES:
        return seen
    return seen[: max(1, _LARGEST_SCORES // (seen.numel() // len(seen)))]


def _plain(options: Mapping[str, Any]) -> dict[str, float | int | str]:
    kept = {k: v for k, v in options.items() if isinstance(v, (int, float, str)) and v is not None}
    weight = options.get("weight")
    bad = int((~torch.isfinite(weight)).sum()) if isinstance(weight, torch.Tensor) else 0
    return {**kept, "has_weight": int(weight is not None), "non_finite_weights": bad}


def is_one_hot(scores: torch.Tensor, targets: torch.Tensor) -> bool:
    """Whether targets of the scores' shape (rows, classes) are 1 for one class of each row and 0 for the others."""
    if targets.shape != scores.shape or targets.dim() != 2 or targets.shape[1] < 2 or not targets.numel():
        return False
    return bool(((targets == 0) | (targets == 1)).all()) and bool((targets.sum(dim=1) == 1).all())


def _rows_of_several_labels(scores: torch.Tensor, targets: torch.Tensor) -> int:
    """How many rows of vector targets, of the scores' own shape, sum to more than one."""
    if targets.dim() < 2 or targets.shape != scores.shape or targets.shape[-1] < 2:
        return 0
    return int((targets.float().sum(dim=-1) > 1 + _SUM_WITHIN).sum())


def _aligned_value(kept: KeptLoss) -> float | None:
    """What an element-wise loss would be with the targets in the scores' shape; None where they have it."""
    scores, targets = kept.scores.detach(), kept.targets
    if kept.function not in ELEMENTWISE or scores.shape == targets.shape or scores.numel() != targets.numel():
        return None
    try:
        return float(getattr(F, kept.function)(scores.float(), targets.reshape(scores.shape).float()))
    except RuntimeError:  # scores outside (0, 1) for binary_cross_entropy: another fact shows that
        return None


def _plain_value(kept: KeptLoss) -> float | None:
    """The mean cross-entropy of the scores in nats, without class weights, smoothing or another reduction."""
    scores = _first_rows(kept.scores).float()
    targets = kept.targets[: len(scores)] if kept.targets.dim() else kept.targets
    if kept.function != "cross_entropy" or scores.dim() < 2 or targets.is_floating_point():
        return None
    try:
        return float(
            F.cross_entropy(scores, targets, ignore_index=int(kept.options.get("ignore_index", -100)))
        )
    except (
        RuntimeError,
        IndexError,
        ValueError,
    ):  # shapes or labels that do not fit: the call itself raised too
        return None


@torch.no_grad()
def losses_of_rows(kept: KeptLoss) -> torch.Tensor | None:
    """The loss of each row (mean over its other axes), by the same function and options; None if it has none."""
    if kept.scores.numel() > _LARGEST_SCORES:
        return None
    options = {k: v for k, v in kept.options.items() if k not in ("reduction", "size_average", "reduce")}
    try:
        each = getattr(F, kept.function)(
            kept.scores.detach().float(), kept.targets, **options, reduction="none"
        )
    except (RuntimeError, IndexError, ValueError, TypeError):  # the call itself raised, or has no such form
        return None
    if each.dim() == 0 or not each.numel():
        return None
    return torch.as_tensor(each.reshape(len(each), -1).mean(dim=1))


def shares_of_total(total: torch.Tensor, kept: Sequence[KeptLoss]) -> list[float | None]:
    """By what factor each call's value entered the loss that is minimised: the derivative of one by the other."""
    values = [k.value for k in kept]
    usable = [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad and v.numel() == 1]
    if len(usable) < 2:
        return [None] * len(values)
    slopes = torch.autograd.grad(total, usable, retain_graph=True, allow_unused=True)
    found = {id(v): 0.0 if s is None else float(s) for v, s in zip(usable, slopes)}
    return [found.get(id(v)) for v in values]
