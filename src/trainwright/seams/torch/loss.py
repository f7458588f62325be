"""Inputs and results of torch loss calls as facts, and the loss of each row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F

from trainwright.core import Place
from trainwright.probes import losses
from trainwright.probes.constant import JudgedLoss, answers, hits_of_call
from trainwright.seams.source.places import is_users
from trainwright.stages import CLASS_LOSSES, ELEMENTWISE, IGNORED_LABEL, MOST_CLASSES, LossCall
from trainwright.stages.loss import LOSS_FORMS
from trainwright.tensors.torch import objects as tensors

LOSSES: dict[Callable[..., Any], str] = {getattr(F, name): name for name in LOSS_FORMS}
# For larger scores (rows of tokens over a vocabulary), only the first rows are used, to avoid doubling memory.
_LARGEST_SCORES = 16_000_000


def flat_smoothed(smoother: Any, outputs: Any, labels: Any, shift_labels: bool) -> tuple[Any, Any, dict[str, Any]]:
    """The scores and targets that transformers' `LabelSmoother` compares, and the options of a cross-entropy that does the same."""
    scores = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
    if shift_labels:
        scores, labels = scores[..., :-1, :], labels[..., 1:]
    options = {"label_smoothing": smoother.epsilon, "ignore_index": smoother.ignore_index}
    return scores.reshape(-1, scores.shape[-1]), labels.reshape(-1), options


@dataclass(kw_only=True)
class KeptLoss:
    """The tensors of one loss call, for measurements after the step."""

    function: str
    scores: torch.Tensor
    targets: torch.Tensor
    options: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    at: Place | None = None
    """The user's line of the call."""
    made_at: Place | None = None
    """The user's line that built the module that makes the call."""


def calling_module(frame: FrameType | None) -> torch.nn.Module | None:
    """The loss module whose forward makes a call: the first module on the way from a frame to the user's code."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            return owner
        frame = frame.f_back
    return None


def measure_call(kept: KeptLoss, **more: Any) -> LossCall:
    """The facts of one call; `more` are those not derived from the numbers (place, failure, activation)."""
    first = _first_rows(kept.scores)
    scores, targets = tensors.to_numpy(first), tensors.to_numpy(kept.targets)
    axis = -1 if kept.function == "ctc_loss" else 1  # the class axis
    ignored = int(kept.options.get("ignore_index", IGNORED_LABEL))
    vectors = kept.targets.shape == kept.scores.shape
    plain = losses.cross_entropy(scores, targets[: len(scores)] if targets.ndim else targets, axis, ignored=ignored)
    return LossCall(
        function=kept.function,
        inputs=tensors.facts(kept.scores),
        targets=tensors.facts(kept.targets),
        options=_plain(kept.options),
        class_weights=_class_weights(kept),
        made_at=kept.made_at,
        value=float(kept.value.detach().float().mean()) if isinstance(kept.value, torch.Tensor) else None,
        rows_of_several_labels=losses.rows_of_several_labels(targets, targets) if vectors else 0,
        aligned_value=_aligned_value(kept),
        plain_value=plain if kept.function == "cross_entropy" else None,
        **losses.targets_shown(targets, ignored),
        **losses.scores_shown(scores, axis, rounding=_rounding(kept.scores), whole=len(first) == len(kept.scores))
        if scores.ndim
        else {},
        **more,
    )


def _rounding(scores: torch.Tensor) -> float:
    """How far a row of probabilities may sum from one: in bfloat16, each is rounded to within 1/250."""
    within = losses.SUM_WITHIN
    return max(within, torch.finfo(scores.dtype).eps) if scores.is_floating_point() else within


def _first_rows(scores: torch.Tensor) -> torch.Tensor:
    """The scores, or their first rows if there are too many."""
    seen = scores.detach()
    if seen.dim() < 2 or seen.numel() <= _LARGEST_SCORES:
        return seen
    return seen[: max(1, _LARGEST_SCORES // (seen.numel() // len(seen)))]


def _plain(options: Mapping[str, Any]) -> dict[str, float | int | str]:
    kept = {k: v for k, v in options.items() if isinstance(v, (int, float, str)) and v is not None}
    weight = options.get("weight")
    bad = int((~torch.isfinite(weight)).sum()) if isinstance(weight, torch.Tensor) else 0
    return {**kept, "has_weight": int(weight is not None), "non_finite_weights": bad}


def _class_weights(kept: KeptLoss) -> dict[int, float]:
    """The weight of each class that the loss is called with; empty if it has none."""
    if kept.function in ("cross_entropy", "nll_loss"):
        weight = kept.options.get("weight")
        if isinstance(weight, torch.Tensor) and weight.dim() == 1 and len(weight) <= MOST_CLASSES:
            return dict(enumerate(weight.tolist()))
    elif kept.function == "binary_cross_entropy_with_logits":
        weight = kept.options.get("pos_weight")
        if isinstance(weight, torch.Tensor) and weight.numel() == 1 and kept.options.get("weight") is None:
            return {0: 1.0, 1: float(weight)}
    return {}


def _aligned_value(kept: KeptLoss) -> float | None:
    """The value of an element-wise loss with the targets reshaped to the scores' shape; None if they have it."""
    scores, targets = kept.scores.detach(), kept.targets
    if kept.function not in ELEMENTWISE or scores.shape == targets.shape or scores.numel() != targets.numel():
        return None
    try:
        return float(getattr(F, kept.function)(scores.float(), targets.reshape(scores.shape).float()))
    except RuntimeError:  # scores outside (0, 1) for binary_cross_entropy; another fact reports that
        return None


def judge_call(kept: KeptLoss) -> JudgedLoss | None:
    """One call, for comparison with a constant prediction; None: it is no mean of losses whose constant prediction is known."""
    value, options, function = kept.value, kept.options, kept.function
    is_mean = isinstance(value, torch.Tensor) and value.numel() == 1 and options.get("reduction", "mean") == "mean"
    if not is_mean or function not in (*CLASS_LOSSES, *ELEMENTWISE):
        return None
    scores, targets = tensors.to_numpy(kept.scores), tensors.to_numpy(kept.targets)
    if not targets.ndim:  # a loop over single rows has a target without any axis
        scores, targets = scores.reshape(1, *scores.shape), targets.reshape(1)
    return JudgedLoss(
        function=function,
        shape=scores.shape,
        targets=targets,
        value=float(value.detach()),
        options={k: tensors.to_numpy(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()},
        answers=answers(function, scores, targets, of_indices=True),
        hits=hits_of_call(function, scores, targets, ignored=int(options.get("ignore_index", IGNORED_LABEL))),
    )


@torch.no_grad()
def losses_of_rows(kept: KeptLoss) -> torch.Tensor | None:
    """The loss of each row (mean over its other axes), by the same function and options; None if it has none."""
    if kept.scores.numel() > _LARGEST_SCORES:
        return None
    options = {k: v for k, v in kept.options.items() if k not in ("reduction", "size_average", "reduce")}
    try:
        each = getattr(F, kept.function)(kept.scores.detach().float(), kept.targets, **options, reduction="none")
    except (RuntimeError, IndexError, ValueError, TypeError):  # the call itself raised, or has no such form
        return None
    if each.dim() == 0 or not each.numel():
        return None
    return torch.as_tensor(each.reshape(len(each), -1).mean(dim=1))


def shares_of_total(total: torch.Tensor, kept: Sequence[KeptLoss]) -> list[float | None]:
    """The factor of each call's value in the minimized loss: the derivative of the loss by that value."""
    values = [k.value for k in kept]
    usable = [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad and v.numel() == 1]
    if len(usable) < 2:
        return [None] * len(values)
    slopes = torch.autograd.grad(total, usable, retain_graph=True, allow_unused=True)
    found = {id(v): 0.0 if s is None else float(s) for v, s in zip(usable, slopes)}
    return [found.get(id(v)) for v in values]


@cache
def parameters_of(func: Any) -> tuple[str, ...]:
    """The names of a loss function's parameters."""
    return tuple(inspect.signature(func).parameters)


# A loss term's attributes that a repair may set besides its arguments.
TERM = {"trained": True, "shown": True, "scale": 1.0}


def as_wanted(value: Any, *, trained: bool, shown: bool, scale: float) -> Any:
    """A loss term scaled, without its gradient, or with its gradient and the value 0."""
    if not isinstance(value, torch.Tensor) or (trained and shown and scale == 1.0):
        return value
    value = value * scale if trained else value.detach() * scale
    return value if shown else value - value.detach()
