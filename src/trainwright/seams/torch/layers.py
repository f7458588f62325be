"""Measurements of a torch layer: its facts in a step, declared sizes, and which calls use dropout or the current batch's statistics."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from trainwright.probes.forward import RANGES, RECTIFIERS, activation_shares
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import is_written
from trainwright.stages import ModuleFacts
from trainwright.tensors.torch import objects as tensors

_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def module_facts(
    name: str, module: nn.Module, inputs: tuple[Any, ...], output: Any, built: BuiltObjects
) -> ModuleFacts:
    """The facts of one of a model's modules and its call."""
    result = next(iter(tensors.tensors_in(output)), None)
    kind = type(module).__name__
    where, sizes = built.modules.get(module), declared_sizes(module)
    asked = (*([where] if where else []), *built.asked_at.get(module, ())) if sizes else ()
    return ModuleFacts(
        name=name,
        kind=kind,
        where=where,
        inputs=tuple(tensors.facts(t) for t in [t for t in inputs if isinstance(t, torch.Tensor)][:4]),
        output=tensors.facts(result) if result is not None else None,
        training=module.training,
        leaf=next(module.children(), None) is None,
        sizes=sizes,
        size_at=next((place for place in asked if is_written(place, sizes[-1])), None),
        dropout=module.p if isinstance(module, nn.modules.dropout._DropoutNd) else None,
        **(measure_activation(kind, result) if result is not None else {}),
    )


def measure_activation(kind: str, result: torch.Tensor) -> dict[str, Any]:
    """What `activation_shares` says of the outputs of a layer of this kind."""
    name = kind.lower()
    if name not in (*RECTIFIERS, *RANGES):
        return {}
    values = tensors.to_numpy(result)
    return activation_shares(name, np.moveaxis(values, 1, -1) if values.ndim == 4 else values)


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


def active_noise(func: Any, args: Any, kwargs: Mapping[str, Any]) -> str | None:
    """dropout, or batch_norm with the batch's statistics, if a function is about to use it."""
    name = getattr(func, "__name__", "")
    if name in _DROPOUTS and getattr(F, name, None) is func:
        share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        return "dropout" if share > 0 and kwargs.get("training", args[2] if len(args) > 2 else True) else None
    if func is F.batch_norm:
        # Without running statistics (track_running_stats=False), batch statistics are intended.
        kept = kwargs.get("running_mean", args[1] if len(args) > 1 else None) is not None
        return "batch_norm" if kept and kwargs.get("training", args[5] if len(args) > 5 else False) else None
    if name == "scaled_dot_product_attention":
        return "dropout" if kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0) > 0 else None
    if name in _RECURRENT and len(args) > 6:
        # (…, has_biases, num_layers, dropout, train, bidirectional, batch_first), for padded and packed input alike.
        shares, flags = [a for a in args if isinstance(a, float)], [a for a in args if isinstance(a, bool)]
        return "dropout" if shares[:1] and shares[0] > 0 and flags[1:2] == [True] else None
    return None
