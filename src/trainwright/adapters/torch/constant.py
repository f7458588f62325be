"""The torch loss calls of a batch, for comparison with a constant prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from trainwright.probes.constant import JudgedLoss, answers, hits_of_call
from trainwright.stages import CLASS_LOSSES, ELEMENTWISE, IGNORED_LABEL
from trainwright.tensors.torch import objects as tensors
from trainwright.tensors.torch.transforms import within_transform

_WATCHED = {getattr(F, name): name for name in (*CLASS_LOSSES, *ELEMENTWISE)}


@dataclass
class JudgedLosses(TorchFunctionMode):
    """Records the arguments of every loss call while it is active."""

    calls: list[JudgedLoss] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in _WATCHED and isinstance(result, torch.Tensor) and not within_transform():
            self._note(_WATCHED[func], args, dict(kwargs), result)
        return result

    def _note(self, function: str, args: Any, named: dict[str, Any], result: torch.Tensor) -> None:
        given = named.pop("input", args[0] if args else None)
        targets = named.pop("target", args[1] if len(args) > 1 else None)
        if not isinstance(given, torch.Tensor) or not isinstance(targets, torch.Tensor) or len(args) > 2:
            return
        if result.numel() == 1 and named.get("reduction", "mean") == "mean":
            self.note(function, given, targets, float(result.detach()), named)

    def note(
        self, function: str, given: torch.Tensor, targets: torch.Tensor, value: float, named: dict[str, Any]
    ) -> None:
        """Record a loss call: its scores, its targets, its value and its options."""
        scores, aims = tensors.to_numpy(given), tensors.to_numpy(targets)
        if not aims.ndim:  # a loop over single rows has a target without any axis
            scores, aims = scores.reshape(1, *scores.shape), aims.reshape(1)
        options = {k: tensors.to_numpy(v) if isinstance(v, torch.Tensor) else v for k, v in named.items()}
        call = JudgedLoss(
            function=function,
            shape=scores.shape,
            targets=aims,
            value=value,
            options=options,
            answers=answers(function, scores, aims, of_indices=True),
            hits=hits_of_call(function, scores, aims, ignored=int(named.get("ignore_index", IGNORED_LABEL))),
        )
        self.calls.append(call)


def answers_to(labels: Any, scores: Any) -> tuple[list[int], list[int]]:
    """Predicted and true classes, where scores are (N, C) and labels (N)."""
    if not tensors.is_tensor(labels) or labels.dim() != 1 or labels.is_floating_point():
        return [], []
    if scores is None or scores.dim() != 2 or len(scores) != len(labels) or scores.shape[1] < 2:
        return [], []
    return scores.argmax(-1).tolist(), [int(x) for x in labels.tolist()]
