"""What a constant prediction would lose on the same rows, and the least that any prediction can lose there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from trainwright.seams.torch.loss import is_one_hot
from trainwright.tensors.torch.transforms import within_transform

# A script's loss that differs by more from its one call of a loss function has further terms.
SAME_WITHIN = 1e-3
_WATCHED = {
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
    )
}
_DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@dataclass(frozen=True)
class Targets:
    """What one call of a loss function was given, but for the values of the predictions."""

    function: str
    shape: tuple[int, ...]
    """Of the predictions."""
    targets: torch.Tensor
    options: dict[str, Any]
    value: float
    classes: tuple[list[int], list[int]] = ([], [])
    """Predicted and true classes, of one-hot targets and of a single score against 0 and 1; else empty."""


@dataclass
class TargetsSeen(TorchFunctionMode):
    """Keeps the targets of every loss call while it is active."""

    calls: list[Targets] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if (
            func in _WATCHED
            and isinstance(result, torch.Tensor)
            and result.numel() == 1
            and not within_transform()
        ):
            named = dict(kwargs)
            given = named.pop("input", args[0] if args else None)
            targets = named.pop("target", args[1] if len(args) > 1 else None)
            plain = len(args) <= 2 and isinstance(given, torch.Tensor) and isinstance(targets, torch.Tensor)
            if plain and named.get("reduction", "mean") == "mean":
                given, targets = _with_rows(given.detach(), targets.detach())
                told = _told(_WATCHED[func], given, targets)
                value = float(result.detach())
                self.calls.append(Targets(_WATCHED[func], tuple(given.shape), targets, named, value, told))
        return result


def _with_rows(given: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both with an axis of rows: a loop over single rows has a target without any axis."""
    return (given, targets) if targets.dim() else (given.reshape(1, *given.shape), targets.reshape(1))


def _told(function: str, scores: torch.Tensor, targets: torch.Tensor) -> tuple[list[int], list[int]]:
    """Predicted and true classes where targets are one-hot, or a single score a row is compared with 0 or 1."""
    if is_one_hot(scores, targets):
        return scores.argmax(1).tolist(), targets.argmax(1).tolist()
    single = scores.shape in (targets.shape, (*targets.shape, 1)) and scores.numel() == len(scores)
    if not single or not bool(((targets == 0) | (targets == 1)).all()):
        return [], []
    middle = 0.0 if function == "binary_cross_entropy_with_logits" else 0.5
    return (scores.reshape(-1) > middle).int().tolist(), targets.reshape(-1).int().tolist()


def constant_and_floor(
    batches: Sequence[Sequence[Targets]], losses: Sequence[float]
) -> tuple[float | None, float]:
    """The loss of the best constant prediction, and the least possible one; None and 0 where they cannot be told.

    Args:
        batches: the loss calls of each batch; only a single call that is the whole loss can be judged.
        losses: the script's loss of each batch.
    """
    if not batches or any(len(calls) != 1 for calls in batches):
        return None, 0.0
    calls = [c[0] for c in batches]
    if any(abs(c.value - loss) > SAME_WITHIN * abs(loss) for c, loss in zip(calls, losses)):
        return None, 0.0
    first = calls[0]
    if any(c.function != first.function or c.shape[1:] != first.shape[1:] for c in calls):
        return None, 0.0
    with torch.no_grad():
        return _judge(first, [c.targets for c in calls])


def _judge(call: Targets, targets: list[torch.Tensor]) -> tuple[float | None, float]:
    if call.function in ("cross_entropy", "nll_loss"):
        if targets[0].is_floating_point():
            return _soft_classes(call, targets)
        return _classes(call, torch.cat([t.reshape(-1) for t in targets]))
    if any(t.shape[1:] != targets[0].shape[1:] for t in targets):
        return None, 0.0
    joined = torch.cat(targets).double()
    if call.function in _DISTANCES:
        return _distance(call, joined)
    return _bits(call, joined)


def _classes(call: Targets, labels: torch.Tensor) -> tuple[float | None, float]:
    """Class indices: the class frequencies, weighted and smoothed as the loss is."""
    width = call.shape[1] if len(call.shape) > 1 else call.shape[0]
    smoothing = float(call.options.get("label_smoothing", 0.0))
    labels = labels[labels != call.options.get("ignore_index", -100)]
    if not labels.numel() or labels.min() < 0 or labels.max() >= width:
        return None, 0.0
    if width > 2 and len(call.targets) == width and len(torch.unique(call.targets)) == width:
        return (
            None,
            0.0,
        )  # rows that are each other's classes (a contrastive loss) have no constant prediction
    weight = call.options.get("weight")
    weights = torch.ones(width) if weight is None else weight.detach().cpu()
    weights = weights.double()
    counts = torch.bincount(labels.cpu(), minlength=width).double()
    whole = (counts * weights).sum()
    mass = (1 - smoothing) * weights * counts + smoothing / width * weights * counts.sum()
    constant = _entropy(mass) / whole
    if not smoothing:
        return float(constant), 0.0
    seen = counts.nonzero().flatten().tolist()
    of_rows = sum(
        counts[y] * _entropy(smoothing / width * weights + (1 - smoothing) * weights * _one(y, width))
        for y in seen
    )
    return float(constant), float(of_rows / whole)


def _soft_classes(call: Targets, targets: list[torch.Tensor]) -> tuple[float | None, float]:
    if call.options.get("weight") is not None or len(call.shape) != 2:
        return None, 0.0
    joined, smoothing = torch.cat(targets).double(), float(call.options.get("label_smoothing", 0.0))
    joined = (1 - smoothing) * joined + smoothing / joined.shape[1]
    return float(_entropy(joined.mean(0))), float(torch.stack([_entropy(row) for row in joined]).mean())


def _bits(call: Targets, targets: torch.Tensor) -> tuple[float | None, float]:
    """Targets from 0 to 1, each column by itself."""
    if call.options.get("weight") is not None or targets.min() < 0 or targets.max() > 1:
        return None, 0.0
    positive = call.options.get("pos_weight")
    weight = (
        positive.detach().double().cpu() if positive is not None else torch.tensor(1.0, dtype=torch.float64)
    )
    targets = targets.cpu()

    def lost(share: torch.Tensor) -> torch.Tensor:
        on, off = weight * share, 1 - share
        return -(torch.xlogy(on, on / (on + off)) + torch.xlogy(off, off / (on + off)))

    return float(lost(targets.mean(0)).mean()), float(lost(targets).mean())


def _distance(call: Targets, targets: torch.Tensor) -> tuple[float | None, float]:
    """Real targets: the better of mean and median, in each column."""
    function = getattr(F, call.function)
    options = {k: v for k, v in call.options.items() if k in ("beta", "delta")}
    middles = (targets.mean(0), targets.median(0).values)
    return min(float(function(m.expand_as(targets), targets, **options)) for m in middles), 0.0


def _entropy(mass: torch.Tensor) -> torch.Tensor:
    """Σ m ln(Σm / m): the least cross-entropy, times its mass, of a prediction for this mass over classes."""
    return -torch.xlogy(mass, mass / mass.sum()).sum()


def _one(index: int, width: int) -> torch.Tensor:
    return F.one_hot(torch.tensor(index), width).double()
