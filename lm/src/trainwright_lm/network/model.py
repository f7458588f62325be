"""The network: a decoder-only Transformer, either GPT-2 as published or with modern components.

Dimensions in tensor names:
    B windows, T positions, D width, V vocabulary, L layers, H heads, S head width, F width inside the MLP,
    P positions that fit in a cache; 3D is query, key and value side by side.

Architecture "gpt2" computes what transformers' GPT2LMHeadModel does (Radford et al. 2019): learned positions, LayerNorm
before each block, tanh GELU, biases, output tied to the embedding. "modern" computes what its Qwen3ForCausalLM does
with tied embeddings: rotary positions (arXiv 2104.09864), RMSNorm (1910.07467), normalized queries and keys
(2302.05442), SwiGLU (2002.05202), no biases.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainwright.errors import UsageError
from trainwright_lm.config import ModelConfig
from trainwright_lm.network.gradients import RmsNorm, query_key_value

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


def mlp_width(config: ModelConfig) -> int:
    """F: 4 x width in GPT-2; 8/3 x width for SwiGLU's three matrices (as many parameters), up to a multiple of 32."""
    if config.architecture == "gpt2":
        return 4 * config.width
    return math.ceil(8 * config.width / 3 / 32) * 32


class Cache:
    """Keys and values of the positions seen so far, preallocated for all positions."""

    def __init__(
        self,
        config: ModelConfig,
        batch: int = 1,
        positions: int | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Allocate `positions` for each of `batch` sequences; None: the model's context length."""
        self.positions = config.context if positions is None else positions
        self.length = 0
        """Number of filled positions. Setting it to a smaller value forgets the positions after it."""
        shape = (config.layers, batch, config.heads, self.positions, config.width // config.heads)
        self.keys_LBHPS = torch.zeros(shape, device=device, dtype=dtype)
        self.values_LBHPS = torch.zeros(shape, device=device, dtype=dtype)

    def put(self, layer: int, key_BHTS: Tensor, value_BHTS: Tensor) -> tuple[Tensor, Tensor]:
        """Store the layer's new keys and values after the filled positions, and return all; `length` is unchanged."""
        end = self.length + key_BHTS.shape[2]
        keys_BHPS, values_BHPS = self.keys_LBHPS[layer], self.values_LBHPS[layer]
        keys_BHPS[:, :, self.length : end] = key_BHTS
        values_BHPS[:, :, self.length : end] = value_BHTS
        return keys_BHPS[:, :, :end], values_BHPS[:, :, :end]


class Attention(nn.Module):
    """Causal self-attention; with a cache, it also attends to the cached positions."""

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
        mask = None
        if cache is not None:
            before = cache.length
            key_BHTS, value_BHTS = cache.put(self.layer, key_BHTS, value_BHTS)
            if before and T > 1:
                mask = torch.ones(T, before + T, dtype=torch.bool, device=x_BTD.device).tril(before)
        dropout = self.dropout if self.training else 0.0
        if cache is None and _short_on_cpu(query_BHTS):
            mixed_BHTS = _plain_attention(query_BHTS, key_BHTS, value_BHTS, dropout)
        else:
            causal = mask is None and T > 1
            mixed_BHTS = F.scaled_dot_product_attention(
                query_BHTS, key_BHTS, value_BHTS, attn_mask=mask, dropout_p=dropout, is_causal=causal
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
        if config.vocabulary_size <= 0:
            raise UsageError(
                "model.vocabulary_size must be above 0 when the network is built (0 means the vocabulary size of the data's "
                f"tokenizer); got {config.vocabulary_size}."
            )
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        if config.architecture == "gpt2":
            self.position = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config.layers))
        self.norm = _norm(config)
        self.initialise()

    def initialise(self) -> None:
        """Reinitialize all weights with torch's global generator."""
        scaled = INITIAL_DEVIATION / math.sqrt(2 * self.config.layers)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                adds_to_stream = name.endswith(("attention.output", "mlp.down"))
                nn.init.normal_(module.weight, std=scaled if adds_to_stream else INITIAL_DEVIATION)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=INITIAL_DEVIATION)
            elif isinstance(module, nn.LayerNorm | RmsNorm):
                module.reset_parameters()

    @property
    def output_weight(self) -> Tensor:
        """(V, D): the embedding's weight."""
        return self.embedding.weight

    def hidden(self, ids_BT: Tensor, cache: Cache | None = None) -> Tensor:
        """(B, T, D) after the last norm. With a cache, the ids follow its contents and are added to it.

        Raises:
            UsageError: if there are more positions than the model or the cache has.
        """
        before = cache.length if cache is not None else 0
        end = before + ids_BT.shape[1]
        room = min(self.config.context, cache.positions if cache is not None else end)
        if end > room:
            raise UsageError(
                f"A sequence must have at most {room} positions here; got {end}. Keep its last {room} tokens, "
                "or train with a longer model.context."
            )
        x_BTD = self.embedding(ids_BT)
        rotation = None
        if self.config.architecture == "gpt2":
            x_BTD = x_BTD + self.position.weight[before:end]
        else:
            rotation = self._rotation(before, end, x_BTD)
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

    def _rotation(self, start: int, end: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of positions start..end-1, each (T, S/2)."""
        head_width = self.config.width // self.config.heads
        steps = torch.arange(0, head_width, 2, device=like.device, dtype=torch.float32)
        positions = torch.arange(start, end, device=like.device, dtype=torch.float32)
        angles = torch.outer(positions, 1.0 / ROPE_BASE ** (steps / head_width))
        return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def _norm(config: ModelConfig) -> nn.Module:
    if config.architecture == "gpt2":
        return nn.LayerNorm(config.width, eps=LAYER_NORM_EPSILON)
    return RmsNorm(config.width, RMS_NORM_EPSILON)
