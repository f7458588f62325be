"""torch's tensors, models and optimizers (`base.Tensors`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.stages.tensor import TensorFacts

# Statistics of larger tensors are taken over an even sample of this many values; finiteness over all.
LARGEST_EXACT = 4_000_000


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


@torch.no_grad()
def facts(tensor: torch.Tensor) -> TensorFacts:
    seen = tensor.detach()
    base: dict[str, Any] = {
        "shape": tuple(seen.shape),
        "dtype": dtype_name(seen.dtype),
        "device": seen.device.type,
        "requires_grad": tensor.requires_grad,
    }
    if seen.numel() == 0 or seen.is_complex() or seen.is_sparse or seen.device.type == "meta":
        return TensorFacts(**base)
    flat = seen.reshape(-1)
    non_finite = int((~torch.isfinite(flat)).sum()) if flat.is_floating_point() else 0
    if flat.numel() > LARGEST_EXACT:
        flat = flat[:: flat.numel() // LARGEST_EXACT + 1]
    values = flat.to(torch.float32 if flat.is_floating_point() else torch.float64)
    if non_finite:
        values = values[torch.isfinite(values)]
    if values.numel() == 0:
        return TensorFacts(non_finite=non_finite, **base)
    return TensorFacts(
        minimum=float(values.min()),
        maximum=float(values.max()),
        mean=float(values.mean()),
        deviation=float(values.std(correction=0)),
        non_finite=non_finite,
        zero_share=float((values == 0).float().mean()),
        **base,
    )


def dtype_name(dtype: torch.dtype) -> str:
    """int64 for torch.int64."""
    return str(dtype).removeprefix("torch.")


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    host = tensor.detach().cpu()
    if host.dtype in (torch.bfloat16, torch.float16):
        host = host.float()
    return np.asarray(host.numpy())


def like(array: np.ndarray, reference: torch.Tensor, dtype: str | None = None) -> torch.Tensor:
    kind = getattr(torch, dtype) if dtype else reference.dtype
    return torch.as_tensor(np.ascontiguousarray(array)).to(device=reference.device, dtype=kind)


def cast(tensor: torch.Tensor, dtype: str) -> torch.Tensor:
    return tensor.to(getattr(torch, dtype))


def reshape(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return tensor.reshape(tuple(shape))


def log(tensor: torch.Tensor) -> torch.Tensor:
    return torch.log(tensor.clamp_min(1e-12))


def logit(tensor: torch.Tensor) -> torch.Tensor:
    return torch.logit(tensor, eps=1e-6)


def permute(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    return tensor.permute(*axes).contiguous()


def set_learning_rate(optimizer: Any, *, factor: float | None = None, rate: float | None = None) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate if rate is not None else group["lr"] * (factor if factor is not None else 1.0)


def unfreeze(model: nn.Module, optimizer: Any, names: Sequence[str] | None = None) -> None:
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    new = []
    for name, parameter in model.named_parameters():
        if (names is None or name in names) and parameter.is_floating_point():
            parameter.requires_grad_(True)
            if id(parameter) not in held:
                new.append(parameter)
    if new:
        rate = max((g["lr"] for g in optimizer.param_groups), default=1e-3)
        optimizer.add_param_group({"params": new, "lr": rate})


def output_layer(model: nn.Module) -> tuple[str, nn.Linear] | None:
    """The linear layer that gives the scores: the one of the configured width, else the last one declared."""
    layers = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    width = getattr(getattr(model, "config", None), "num_labels", None)
    fitting = [(n, m) for n, m in layers if m.out_features == width]
    return (fitting or layers or [None])[-1]


@torch.no_grad()
def widen_head(model: nn.Module, classes: int) -> str:
    found = output_layer(model)
    if found is None:
        raise ValueError("widen_head needs a model with a linear layer; got none.")
    name, old = found
    new = nn.Linear(old.in_features, classes, bias=old.bias is not None).to(old.weight.device, old.weight.dtype)
    kept = min(classes, old.out_features)
    deviation = float(old.weight.std()) or 0.02
    new.weight.normal_(0.0, deviation)
    new.weight[:kept] = old.weight[:kept]
    if old.bias is not None:
        new.bias.zero_()
        new.bias[:kept] = old.bias[:kept]
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, new)
    for owner in (model, getattr(model, "config", None)):
        if owner is not None and hasattr(owner, "num_labels"):
            owner.num_labels = classes
    return name


def resize_embeddings(model: nn.Module, rows: int) -> None:
    model.resize_token_embeddings(rows)  # type: ignore[operator]


def set_dropout(model: nn.Module, probability: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = probability


def set_training(model: nn.Module, training: bool) -> None:
    model.train(training)
