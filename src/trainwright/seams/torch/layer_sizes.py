"""The sizes that layers declare."""

from __future__ import annotations

from torch import nn


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
