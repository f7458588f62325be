"""Operations with handwritten gradients: autograd would pass over memory twice as often (measured on a CPU).

In a compiled layer they are ordinary operations, which the compiler fuses.

Dimensions in tensor names: B windows, T positions, H heads, S head width, R half of it; 2 is query and key, 3 is query,
key and value. All arithmetic is at least float32, whatever the inputs' type.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class RmsNorm(nn.Module):
    """x / sqrt(mean(x²) + epsilon) x weight, over the last dimension (arXiv 1910.07467)."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = epsilon

    def reset_parameters(self) -> None:
        """Set all weights to 1."""
        nn.init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            exact = _exact(x)
            return (exact * _scale(exact, self.eps) * self.weight).to(x.dtype)
        normalised: Tensor = _RmsNorm.apply(x, self.weight, self.eps)
        return normalised


def query_key_value(parts_BT3HS: Tensor, weights_2S: Tensor, cos_TR: Tensor, sin_TR: Tensor, epsilon: float) -> Tensor:
    """(3, B, H, T, S), contiguous: query and key normalized by RMSNorm, then rotated by position; value unchanged.

    Feature i is rotated with feature i + S/2, by the angle whose cosine and sine are given for i and the position.
    """
    if torch.compiler.is_compiling():
        parts_3BHTS = parts_BT3HS.permute(2, 0, 3, 1, 4)
        pair_2BHTS = _exact(parts_3BHTS[:2])
        normalised_2BHTS = pair_2BHTS * _scale(pair_2BHTS, epsilon) * weights_2S[:, None, None, None]
        turned_2BHTS = rotated(normalised_2BHTS, cos_TR, sin_TR).to(parts_3BHTS.dtype)
        return torch.cat((turned_2BHTS, parts_3BHTS[2:]))
    by_hand_3BHTS: Tensor = _QueryKeyValue.apply(parts_BT3HS, weights_2S, cos_TR, sin_TR, epsilon)
    return by_hand_3BHTS


def rotated(x: Tensor, cos_TR: Tensor, sin_TR: Tensor) -> Tensor:
    """Rotate each pair of features (i, i + S/2) of the last dimension by the angle given for i and the position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat(
        (torch.addcmul(first * cos_TR, second, sin_TR, value=-1), torch.addcmul(second * cos_TR, first, sin_TR)), dim=-1
    )


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _scale(x: Tensor, epsilon: float) -> Tensor:
    """1 / sqrt(mean(x²) + epsilon) over the last dimension, which is kept."""
    if torch.compiler.is_compiling():
        return torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()


def _before_norm(grad: Tensor, normalised: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of the norm's input, and grad x normalised, which sums to the weight's gradient."""
    products = grad * normalised
    means = (products * weight).mean(-1, keepdim=True)
    return (grad * weight).addcmul_(normalised, means, value=-1).mul_(scale), products


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        exact = _exact(x)
        scale = _scale(exact, epsilon)
        ctx.save_for_backward(x, weight, scale)
        return (exact * scale).mul_(weight).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        grad_x, products = _before_norm(_exact(grads[0]), x * scale, scale, weight)
        return grad_x.to(x.dtype), products.flatten(0, -2).sum(0).to(weight.dtype), None


class _QueryKeyValue(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, parts_BT3HS: Tensor, weights_2S: Tensor, cos_TR: Tensor, sin_TR: Tensor, epsilon: float
    ) -> Tensor:
        out_3BHTS = parts_BT3HS.permute(2, 0, 3, 1, 4).clone(memory_format=torch.contiguous_format)
        pair_2BHTS = _exact(out_3BHTS[:2])
        scale = _scale(pair_2BHTS, epsilon)
        normalised_2BHTS = pair_2BHTS * scale
        ctx.save_for_backward(normalised_2BHTS.to(out_3BHTS.dtype), weights_2S, scale, cos_TR, sin_TR)
        out_3BHTS[:2] = rotated(normalised_2BHTS * weights_2S[:, None, None, None], cos_TR, sin_TR)
        return out_3BHTS

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        normalised_2BHTS, weights_2S, scale, cos_TR, sin_TR = ctx.saved_tensors
        turned_back_2BHTS = rotated(_exact(grads[0][:2]), cos_TR, -sin_TR)
        grad_2BHTS, products = _before_norm(
            turned_back_2BHTS, _exact(normalised_2BHTS), scale, weights_2S[:, None, None, None]
        )
        _, B, H, T, S = grads[0].shape
        grad_BT3HS = grads[0].new_empty(B, T, 3, H, S)
        by_part_3BHTS = grad_BT3HS.permute(2, 0, 3, 1, 4)
        by_part_3BHTS[:2] = grad_2BHTS
        by_part_3BHTS[2] = grads[0][2]
        return grad_BT3HS, products.flatten(1, -2).sum(1).to(weights_2S.dtype), None, None, None
