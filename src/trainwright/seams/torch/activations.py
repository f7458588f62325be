"""How much of an activation's range its outputs use."""

from __future__ import annotations

from typing import Any

import torch

RECTIFIERS = ("ReLU", "ReLU6")
SQUASHERS = {"Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Softmax": (0.0, 1.0)}
# Within this distance of either end, a sigmoid's slope is under 0.01 (s(1-s)): hardly any gradient passes.
SATURATED_WITHIN = 0.01


def activation_shares(kind: str, result: torch.Tensor) -> dict[str, Any]:
    """The share of units that are never positive, or of values near an end of the range, as fields of ModuleFacts."""
    with torch.no_grad():
        values = result.detach()
        if kind in RECTIFIERS and values.dim() > 1:
            rows = (
                values.reshape(-1, values.shape[-1])
                if values.dim() != 4
                else values.transpose(1, 3).reshape(-1, values.shape[1])
            )
            return {"dead_share": float((rows <= 0).all(dim=0).float().mean())}
        if kind in SQUASHERS:
            low, high = SQUASHERS[kind]
            near = (values < low + SATURATED_WITHIN) | (values > high - SATURATED_WITHIN)
            return {"saturated_share": float(near.float().mean())}
    return {}
