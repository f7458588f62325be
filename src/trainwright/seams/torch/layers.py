"""Measurements of a torch layer and its activation: declared sizes, and how much of the range the outputs use."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from trainwright.seams.source.places import is_users

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


def declared_sizes(module: nn.Module) -> tuple[int, ...]:
    """(in, out) of a layer, (rows, width) of an embedding, (features) of a normalization; empty for others."""
    for pair in (
        ("in_features", "out_features"),
        ("in_channels", "out_channels"),
        ("num_embeddings", "embedding_dim"),
        ("input_size", "hidden_size"),
        ("num_features",),
    ):
        if all(isinstance(getattr(module, name, None), int) for name in pair):
            return tuple(getattr(module, name) for name in pair)
    return tuple(module.normalized_shape[-1:]) if isinstance(module, nn.LayerNorm) else ()


def is_users_own(module: nn.Module) -> bool:
    """Whether the user wrote its forward."""
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return code is not None and is_users(code.co_filename)
