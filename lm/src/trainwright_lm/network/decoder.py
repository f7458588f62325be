"""The network one position at a time, for generation: computes what `model.Transformer` does, with weights rearranged.

Dimensions in tensor names are those of model.py. A single position is a vector-matrix product, bound by reading the
matrix. Reading a transposed copy takes half the time (measured on an EPYC, width 256: 1.0 instead of 2.2 ms per token),
and skipping the module calls leaves little other overhead. The copy doubles the model's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainwright_lm.network.model import Cache, Layer, Transformer, rotate


class Decoder:
    """A model with a cache for its window, processing one token after another."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        weight_VD = model.output_weight.detach()
        self._embedding_VD, self._output_DV = weight_VD, weight_VD.t().contiguous()
        self._layers = [_position(layer) for layer in model.layers]
        self._norm = _normalised(model.norm)
        self._cache = Cache(model.config, weight_VD)
        self._ids: list[int] = []
        self._positions_TD, self._rotation = None, None
        if model.config.architecture == "gpt2":
            self._positions_TD = model.position.weight.detach()
        else:
            self._rotation = model.rotation(model.config.context, weight_VD)

    @property
    def context(self) -> int:
        """Positions in its window."""
        return self._model.config.context

    def read(self, ids: Sequence[int], last: int = 1) -> Tensor:
        """Start over with these tokens, which must fit into the window; returns logits (last, V) for the last ones."""
        self._cache.length = 0
        self._ids = list(ids)
        ids_1T = torch.tensor([self._ids], device=self._output_DV.device)
        return self._model.hidden(ids_1T, self._cache)[0, -last:] @ self._output_DV

    def take_back(self, count: int) -> None:
        """Forget the last `count` tokens."""
        if count:
            del self._ids[-count:]
            self._cache.length -= count

    def add(self, token: int) -> Tensor:
        """Logits (V,) after one more token. If the window is full, its newest half is read again first."""
        if self._cache.length == self.context:
            return self.read([*self._ids, token][-max(1, self.context // 2) :])[0]
        self._ids.append(token)
        place = self._cache.length
        x_1D = self._embedding_VD[token : token + 1]
        if self._positions_TD is not None:
            x_1D = x_1D + self._positions_TD[place]
        turn = None if self._rotation is None else (self._rotation[0][place], self._rotation[1][place])
        for number, layer in enumerate(self._layers):
            x_1D = layer(x_1D, turn, self._cache, number)
        self._cache.length += 1
        return (self._norm(x_1D) @ self._output_DV)[0]


Turn = tuple[Tensor, Tensor] | None
"""Cosine and sine of one position, each (S/2,); None for a network without rotary positions."""


def _position(layer: Layer) -> Callable[[Tensor, Turn, Cache, int], Tensor]:
    """A function that applies the layer to one position's (1, D), using the earlier positions in the cache."""
    attention, mlp = layer.attention, layer.mlp
    attention_norm, mlp_norm = _normalised(layer.attention_norm), _normalised(layer.mlp_norm)
    query_key_value, output, down = (
        _product(linear) for linear in (attention.query_key_value, attention.output, mlp.down)
    )
    up = _product(mlp.gate_up if mlp.gated else mlp.up)
    if not isinstance(layer.attention_norm, nn.LayerNorm):
        both_21S = torch.stack((attention.query_norm.weight, attention.key_norm.weight)).detach()[:, None]
        epsilon = attention.query_norm.eps

    def forward(x_1D: Tensor, turn: Turn, cache: Cache, number: int) -> Tensor:
        parts_3H1S = query_key_value(attention_norm(x_1D)).view(3, attention.heads, 1, -1)
        query_H1S, key_H1S, value_H1S = parts_3H1S.unbind(0)
        if turn is not None:
            query_key_2HS = _rms(parts_3H1S[:2].squeeze(2), epsilon) * both_21S
            query_HS, key_HS = rotate(query_key_2HS, *turn).unbind(0)
            query_H1S, key_H1S = query_HS[:, None], key_HS[:, None]
        keys_1HPS, values_1HPS = cache.put(number, key_H1S[None], value_H1S[None])
        mixed_1H1S = F.scaled_dot_product_attention(query_H1S[None], keys_1HPS, values_1HPS)
        x_1D = x_1D + output(mixed_1H1S.reshape(x_1D.shape))
        inside_1F = up(mlp_norm(x_1D))
        if mlp.gated:
            gate_1F, up_1F = inside_1F.chunk(2, dim=-1)
            inside_1F = F.silu(gate_1F) * up_1F
        else:
            inside_1F = F.gelu(inside_1F, approximate="tanh")
        return x_1D + down(inside_1F)

    return forward


def _product(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    weight = linear.weight.detach().t().contiguous()
    if linear.bias is None:
        return lambda x: x @ weight
    bias = linear.bias.detach()
    return lambda x: torch.addmm(bias, x, weight)


def _normalised(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    weight = norm.weight.detach()
    if isinstance(norm, nn.LayerNorm):
        bias, shape, epsilon = norm.bias.detach(), norm.normalized_shape, norm.eps
        return lambda x: F.layer_norm(x, shape, weight, bias, epsilon)
    epsilon = norm.eps
    return lambda x: _rms(x, epsilon) * weight


def _rms(x: Tensor, epsilon: float) -> Tensor:
    """x divided by its root mean square; torch's own function takes four times as long on one row (2.13, CPU)."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
