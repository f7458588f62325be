"""The network: a decoder-only Transformer, either GPT-2 as published or with modern components.

Dimensions in tensor names:
    B windows, T positions, D width, V vocabulary, L layers, H heads, S head width, F width inside the MLP,
    P positions that fit in a cache, R half of S; 2 is query and key, 3 is query, key and value; 3D has them side by side.

Architecture "gpt2" computes what transformers' GPT2LMHeadModel does (Radford et al. 2019): learned positions, LayerNorm
before each block, tanh GELU, biases, output tied to the embedding. "modern" computes what its Qwen3ForCausalLM does
with tied embeddings: rotary positions (arXiv 2104.09864), RMSNorm (1910.07467), normalized queries and keys
(2302.05442), SwiGLU (2002.05202), no biases.

Norms and rotations have handwritten gradients: autograd would pass over memory twice as often (measured on a CPU). In a
compiled layer they are ordinary operations, which the compiler fuses. Their arithmetic is at least float32.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainwright_lm.config import ModelConfig

LAYER_NORM_EPSILON = 1e-5  # GPT-2's
RMS_NORM_EPSILON = 1e-6  # Qwen3's
ROPE_BASE = 10_000.0  # as published; larger values are for contexts of many thousands of positions
# GPT-2's and OLMo 2's (arXiv 2501.00656). Projections into the residual stream are divided by another sqrt(2 layers),
# as in GPT-2, so that the stream's variance does not grow with depth.
INITIAL_DEVIATION = 0.02
# Up to here, computing all attention scores at once beats torch's bf16 kernel on a CPU; beyond, it needs much memory.
PLAIN_ATTENTION_POSITIONS = 256
# Matrices fused into one parameter, for a single product: how many, by the last part of the module's name.
FUSED = {"query_key_value": 3, "gate_up": 2}


class RmsNorm(nn.Module):
    """x / sqrt(mean(x²) + epsilon) x weight, over the last dimension (arXiv 1910.07467)."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = epsilon

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
        turned_2BHTS = rotate(normalised_2BHTS, cos_TR, sin_TR).to(parts_3BHTS.dtype)
        return torch.cat((turned_2BHTS, parts_3BHTS[2:]))
    by_hand_3BHTS: Tensor = _QueryKeyValue.apply(parts_BT3HS, weights_2S, cos_TR, sin_TR, epsilon)
    return by_hand_3BHTS


def rotate(x: Tensor, cos_TR: Tensor, sin_TR: Tensor) -> Tensor:
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
        out_3BHTS[:2] = rotate(normalised_2BHTS * weights_2S[:, None, None, None], cos_TR, sin_TR)
        return out_3BHTS

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        normalised_2BHTS, weights_2S, scale, cos_TR, sin_TR = ctx.saved_tensors
        turned_back_2BHTS = rotate(_exact(grads[0][:2]), cos_TR, -sin_TR)
        grad_2BHTS, products = _before_norm(
            turned_back_2BHTS, _exact(normalised_2BHTS), scale, weights_2S[:, None, None, None]
        )
        _, B, H, T, S = grads[0].shape
        grad_BT3HS = grads[0].new_empty(B, T, 3, H, S)
        by_part_3BHTS = grad_BT3HS.permute(2, 0, 3, 1, 4)
        by_part_3BHTS[:2] = grad_2BHTS
        by_part_3BHTS[2] = grads[0][2]
        return grad_BT3HS, products.flatten(1, -2).sum(1).to(weights_2S.dtype), None, None, None


def mlp_width(config: ModelConfig) -> int:
    """F: 4 x width in GPT-2; 8/3 x width for SwiGLU's three matrices (as many parameters), up to a multiple of 32."""
    if config.architecture == "gpt2":
        return 4 * config.width
    return math.ceil(8 * config.width / 3 / 32) * 32


class Cache:
    """Keys and values of the positions of one sequence, preallocated for as many as the model has."""

    def __init__(self, config: ModelConfig, like: Tensor) -> None:
        """Allocate on the device and in the format of a tensor."""
        self.length = 0
        """Number of filled positions. Setting it to a smaller value forgets the positions after it."""
        shape = (config.layers, 1, config.heads, config.context, config.width // config.heads)
        self.keys_LBHPS, self.values_LBHPS = like.new_zeros(shape), like.new_zeros(shape)

    def put(self, layer: int, key_BHTS: Tensor, value_BHTS: Tensor) -> tuple[Tensor, Tensor]:
        """Store the layer's new keys and values after the filled positions, and return all; `length` is unchanged."""
        end = self.length + key_BHTS.shape[2]
        keys_BHPS, values_BHPS = self.keys_LBHPS[layer], self.values_LBHPS[layer]
        keys_BHPS[:, :, self.length : end] = key_BHTS
        values_BHPS[:, :, self.length : end] = value_BHTS
        return keys_BHPS[:, :, :end], values_BHPS[:, :, :end]


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.heads, self.dropout = layer, config.heads, config.dropout
        biased = config.architecture == "gpt2"
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=biased)
        self.output = nn.Linear(config.width, config.width, bias=biased)
        if not biased:
            head_width = config.width // config.heads
            self.query_norm = RmsNorm(head_width, RMS_NORM_EPSILON)
            self.key_norm = RmsNorm(head_width, RMS_NORM_EPSILON)

    def forward(self, x_BTD: Tensor, rotation: tuple[Tensor, Tensor] | None, cache: Cache | None) -> Tensor:
        B, T, D = x_BTD.shape
        parts_BT3HS = self.query_key_value(x_BTD).view(B, T, 3, self.heads, D // self.heads)
        if rotation is None:
            parts_3BHTS = parts_BT3HS.permute(2, 0, 3, 1, 4).contiguous()
        else:
            weights_2S = torch.stack((self.query_norm.weight, self.key_norm.weight))
            parts_3BHTS = query_key_value(parts_BT3HS, weights_2S, *rotation, RMS_NORM_EPSILON)
        query_BHTS, key_BHTS, value_BHTS = parts_3BHTS.unbind(0)
        if cache is not None:
            cache.put(self.layer, key_BHTS, value_BHTS)
        dropout = self.dropout if self.training else 0.0
        if cache is None and _short_on_cpu(query_BHTS):
            mixed_BHTS = _plain_attention(query_BHTS, key_BHTS, value_BHTS, dropout)
        else:
            mixed_BHTS = F.scaled_dot_product_attention(
                query_BHTS, key_BHTS, value_BHTS, dropout_p=dropout, is_causal=T > 1
            )
        out_BTD: Tensor = self.output(mixed_BHTS.transpose(1, 2).reshape(B, T, D))
        return out_BTD


def _short_on_cpu(query_BHTS: Tensor) -> bool:
    """Whether torch's kernel is slower: its bf16 backward pass on a CPU takes 3.5 times as long at 128 positions."""
    positions: int = query_BHTS.shape[2]
    on_cpu = query_BHTS.device.type == "cpu" and query_BHTS.dtype == torch.bfloat16
    return on_cpu and positions <= PLAIN_ATTENTION_POSITIONS


def _plain_attention(query_BHTS: Tensor, key_BHTS: Tensor, value_BHTS: Tensor, dropout: float) -> Tensor:
    """Causal attention that computes all of a layer's scores at once."""
    B, H, T, S = query_BHTS.shape
    query_NTS, key_NTS, value_NTS = (x.reshape(B * H, T, S) for x in (query_BHTS, key_BHTS, value_BHTS))
    future_TT = torch.full((T, T), -math.inf, dtype=query_BHTS.dtype, device=query_BHTS.device).triu(1)
    scores_NTT = torch.baddbmm(future_TT, query_NTS, key_NTS.mT, alpha=S**-0.5)
    shares_NTT = F.dropout(scores_NTT.softmax(-1), dropout, training=dropout > 0)
    return (shares_NTT @ value_NTS).view(B, H, T, S)


class Mlp(nn.Module):
    """GPT-2's two matrices around a GELU, or SwiGLU's three."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, inside = config.width, mlp_width(config)
        self.gated = config.architecture == "modern"
        if self.gated:
            self.gate_up = nn.Linear(width, 2 * inside, bias=False)
        else:
            self.up = nn.Linear(width, inside)
        self.down = nn.Linear(inside, width, bias=not self.gated)

    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.gated:
            gate_BTF, up_BTF = self.gate_up(x_BTD).chunk(2, dim=-1)
            inside_BTF = F.silu(gate_BTF) * up_BTF
        else:
            inside_BTF = _gelu(self.up(x_BTD))
        out_BTD: Tensor = self.down(inside_BTF)
        return out_BTD


def _gelu(x: Tensor) -> Tensor:
    """Tanh GELU. In bf16 on a CPU, torch's exact GELU replaces it: as accurate (relative error 1.75e-3, against 1.74e-3
    for the tanh kernel itself, which is bf16's own rounding) and three times as fast."""
    exact = x.dtype == torch.bfloat16 and x.device.type == "cpu"
    return F.gelu(x, approximate="none" if exact else "tanh")


class Layer(nn.Module):
    """Attention, then the MLP, each applied to the normalized stream and added to it."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.attention_norm = _norm(config)
        self.attention = Attention(config, layer)
        self.mlp_norm = _norm(config)
        self.mlp = Mlp(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x_BTD: Tensor, rotation: tuple[Tensor, Tensor] | None, cache: Cache | None) -> Tensor:
        x_BTD = x_BTD + self.dropout(self.attention(self.attention_norm(x_BTD), rotation, cache))
        return x_BTD + self.dropout(self.mlp(self.mlp_norm(x_BTD)))


class Transformer(nn.Module):
    """The whole network; `config.vocabulary_size` must be set."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        if config.architecture == "gpt2":
            self.position = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config.layers))
        self.norm = _norm(config)
        self.initialise()

    def initialise(self) -> None:
        """Draw the weights of matrices with torch's global generator."""
        scaled = INITIAL_DEVIATION / math.sqrt(2 * self.config.layers)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                adds_to_stream = name.endswith(("attention.output", "mlp.down"))
                nn.init.normal_(module.weight, std=scaled if adds_to_stream else INITIAL_DEVIATION)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=INITIAL_DEVIATION)

    @property
    def output_weight(self) -> Tensor:
        """(V, D): the embedding's weight."""
        return self.embedding.weight

    def hidden(self, ids_BT: Tensor, cache: Cache | None = None) -> Tensor:
        """(B, T, D) after the last norm, for at most as many positions as the model has; a cache must be empty, and is filled."""
        end = ids_BT.shape[1]
        x_BTD = self.embedding(ids_BT)
        rotation = None
        if self.config.architecture == "gpt2":
            x_BTD = x_BTD + self.position.weight[:end]
        else:
            rotation = self.rotation(end, x_BTD)
        x_BTD = self.dropout(x_BTD)
        for layer in self.layers:
            x_BTD = layer(x_BTD, rotation, cache)
        if cache is not None:
            cache.length = end
        hidden_BTD: Tensor = self.norm(x_BTD)
        return hidden_BTD

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Logits (B, T, V); for training, use `loss.training_loss`, which never holds all of them."""
        return F.linear(self.hidden(ids_BT), self.output_weight)

    def rotation(self, end: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of positions 0..end-1, each (T, S/2)."""
        head_width = self.config.width // self.config.heads
        steps = torch.arange(0, head_width, 2, device=like.device, dtype=torch.float32)
        positions = torch.arange(end, device=like.device, dtype=torch.float32)
        angles = torch.outer(positions, 1.0 / ROPE_BASE ** (steps / head_width))
        return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def _norm(config: ModelConfig) -> nn.Module:
    if config.architecture == "gpt2":
        return nn.LayerNorm(config.width, eps=LAYER_NORM_EPSILON)
    return RmsNorm(config.width, RMS_NORM_EPSILON)
