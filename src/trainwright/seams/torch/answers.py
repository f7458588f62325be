"""The tensors in a model's output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def first_tensor(value: Any) -> torch.Tensor | None:
    """The first tensor in an output: itself, or in a mapping, sequence or model output."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return next((t for v in value if (t := first_tensor(v)) is not None), None)
    return None


def scores_of(output: Any) -> torch.Tensor | None:
    """The scores in a model's output: its logits, otherwise its first tensor with more than one number."""
    if isinstance(output, Mapping):
        if isinstance(output.get("logits"), torch.Tensor):
            return output["logits"]
        output = [v for k, v in output.items() if k != "loss"]
    if isinstance(output, torch.Tensor):
        return output if output.dim() else None
    if isinstance(output, (list, tuple)):
        return next((v for v in output if isinstance(v, torch.Tensor) and v.dim()), None)
    return None
