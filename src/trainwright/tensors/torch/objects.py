"""torch's tensors, models and optimizers (`core/tensors.py`)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from trainwright.core import PartMissing
from trainwright.core.tensors import shifts
from trainwright.stages.tensor import TensorFacts
from trainwright.tensors.torch.layers import activate as activate
from trainwright.tensors.torch.layers import change_rows as change_rows
from trainwright.tensors.torch.layers import choose_of_several as choose_of_several
from trainwright.tensors.torch.layers import choose_rows as choose_rows
from trainwright.tensors.torch.layers import flatten_before as flatten_before
from trainwright.tensors.torch.layers import output_layer as output_layer
from trainwright.tensors.torch.layers import register_lists as register_lists
from trainwright.tensors.torch.layers import resize_embeddings as resize_embeddings
from trainwright.tensors.torch.layers import resize_input as resize_input
from trainwright.tensors.torch.layers import widen_head as widen_head

# Statistics of larger tensors use an evenly spaced sample of this many values; finiteness is checked for all.
LARGEST_EXACT = 4_000_000


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def tensors_in(value: Any, depth: int = 0) -> list[torch.Tensor]:
    """The tensors in nested values, as a call's arguments and answers are; not of what is deeper, or of longer lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth > 3:
        return []
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in tensors_in(v, depth + 1)]
    if isinstance(value, (list, tuple)):
        return [t for v in value[:4096] for t in tensors_in(v, depth + 1)]
    return []


@torch.no_grad()
def facts(tensor: torch.Tensor) -> TensorFacts:
    seen = tensor.detach()
    base: dict[str, Any] = {
        "shape": tuple(seen.shape),
        "dtype": dtype_name(seen.dtype),
        "requires_grad": tensor.requires_grad,
    }
    dense = seen.layout == torch.strided
    if not dense or seen.numel() == 0 or seen.is_complex() or seen.device.type == "meta":
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


def renumbered(tensor: torch.Tensor, numbers: Mapping[int, int]) -> torch.Tensor:
    given = found = tensor if tensor.is_floating_point() else tensor.long()  # unsigned ones take no -100
    for low, high, by in shifts(numbers):
        found = found + ((given >= low) & (given <= high)).to(given.dtype) * by
    return found.to(tensor.dtype)


def log(tensor: torch.Tensor) -> torch.Tensor:
    return torch.log(tensor.clamp_min(1e-12))


def log_softmax(tensor: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(tensor, dim=1)


def logit(tensor: torch.Tensor) -> torch.Tensor:
    return torch.logit(tensor, eps=1e-6)


def permute(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    return tensor.permute(*axes).contiguous()


def set_learning_rate(optimizer: Any, *, factor: float | None = None, rate: float | None = None) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate if rate is not None else group["lr"] * (factor if factor is not None else 1.0)


def set_weight_decay(optimizer: Any, value: float) -> None:
    for group in optimizer.param_groups:
        if "weight_decay" in group:
            group["weight_decay"] = value


def held_by(*optimizers: Any) -> set[int]:
    """The parameters of optimizers, by `id`."""
    return {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}


def unfreeze(model: nn.Module, optimizer: Any, names: Sequence[str] | None = None) -> None:
    held = held_by(optimizer) if optimizer is not None else set()
    new = []
    for name, parameter in model.named_parameters():
        if (names is None or name in names) and parameter.is_floating_point():
            parameter.requires_grad_(True)
            if id(parameter) not in held:
                new.append(parameter)
    if new and optimizer is not None:
        rate = max((g["lr"] for g in optimizer.param_groups), default=1e-3)
        optimizer.add_param_group({"params": new, "lr": rate})


def hold_parameters(optimizer: Any, model: nn.Module) -> None:
    own = [p for p in model.parameters() if p.requires_grad]
    names = {id(p) for p in own}
    for group in optimizer.param_groups:
        group["params"] = [p for p in group["params"] if id(p) in names]
    held = held_by(optimizer)
    optimizer.param_groups[0]["params"] += [p for p in own if id(p) not in held]


def set_padding(model: nn.Module, token: int) -> None:
    config: Any = model.config
    config.get_text_config().pad_token_id = config.pad_token_id = token


def freeze(model: nn.Module, names: Sequence[str]) -> None:
    for name, parameter in model.named_parameters():
        if name in names:
            parameter.requires_grad_(False)
            parameter.grad = None


def clear_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.grad = None


def clip_gradients(optimizer: Any, norm: float) -> None:
    def clip(given: Any, args: Any, kwargs: Any) -> None:
        nn.utils.clip_grad_norm_([p for g in given.param_groups for p in g["params"]], norm)

    getattr(optimizer, "optimizer", optimizer).register_step_pre_hook(clip)


def detach_kept(model: nn.Module) -> None:
    for module in model.modules():
        for attributes in (vars(module), module._buffers):
            for name, value in list(attributes.items()):
                if name not in ("_parameters", "_buffers", "_modules") and _on_graph(value):
                    attributes[name] = detached(value)


def _on_graph(value: Any) -> bool:
    if isinstance(value, (list, tuple)) or type(value) is dict:
        return any(_on_graph(v) for v in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, torch.Tensor) and value.grad_fn is not None


def detached(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: detached(v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(detached(v) for v in value)
    return value.detach() if isinstance(value, torch.Tensor) else value


def normalise_rows(tensor: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(tensor, tensor.shape[-1:])


def set_dropout(model: nn.Module, probability: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = probability


@torch.no_grad()
def predicted_classes(scores: torch.Tensor | None, labels: torch.Tensor) -> torch.Tensor | None:
    """The index of the largest score; for one score per row, whether it exceeds 0 (or one half, for probabilities)."""
    if scores is None or not scores.numel() or not labels.numel():
        return None
    if scores.numel() == labels.numel():
        middle = 0.5 if scores.min() >= 0 and scores.max() <= 1 else 0.0
        return (scores.reshape(labels.shape) > middle).to(labels.dtype)
    for axis in (1, -1):
        if scores.dim() > 1 and scores.shape[axis] > 1:
            classes = scores.argmax(axis)
            if classes.numel() == labels.numel() and classes.shape[0] == labels.shape[0]:
                return classes.reshape(labels.shape)
    return None


def padded(rows: Sequence[Any]) -> list[Any]:
    shapes = np.asarray([np.shape(row) if hasattr(row, "shape") else (len(row),) for row in rows])
    missing = shapes.max(axis=0) - shapes
    return [_with_zeros(row, [(0, int(n)) for n in more]) for row, more in zip(rows, missing)]


def _with_zeros(row: Any, more: Sequence[tuple[int, int]]) -> Any:
    if isinstance(row, torch.Tensor):
        return F.pad(row, [n for pair in reversed(more) for n in pair])
    if isinstance(row, np.ndarray):
        return np.pad(row, more)
    return [*row, *[np.zeros_like(row[0]).tolist() if len(row) else 0] * more[0][1]]


def standardise(tensor: torch.Tensor) -> torch.Tensor:
    axes = tuple(range(1, tensor.dim()))  # rows are kept apart
    return (tensor - tensor.mean(axes, keepdim=True)) / (tensor.std(axes, correction=0, keepdim=True) + 1e-6)


def take_rows(batch: Mapping[str, Any], rows: int) -> dict[str, Any]:
    count = next((len(v) for v in batch.values() if is_tensor(v) and v.dim()), 0)
    sized = [k for k, v in batch.items() if isinstance(v, list) or (is_tensor(v) and v.dim())]
    return {k: v[:rows] if k in sized and len(v) == count else v for k, v in batch.items()}


@torch.no_grad()
def zero_non_finite(model: nn.Module) -> None:
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            tensor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)


@torch.no_grad()
def reinitialise(model: nn.Module, names: Sequence[str]) -> None:
    for name, parameter in model.named_parameters():
        if name in names and parameter.dim() > 1:
            nn.init.kaiming_uniform_(parameter, a=5**0.5)  # that of Linear and convolution layers


@torch.no_grad()
def scale_parameters(model: nn.Module, factors: Mapping[str, float]) -> None:
    for name, parameter in model.named_parameters():
        if name in factors:
            parameter.mul_(factors[name])


# Buffer size, in rows, for shuffling an iterable set.
SHUFFLED_ROWS = 10_000


def shuffled(dataset: Any) -> Any:
    if hasattr(dataset, "shuffle"):
        return dataset.shuffle(seed=0)
    if not hasattr(dataset, "__len__"):
        dataset = list(itertools.islice(iter(dataset), SHUFFLED_ROWS))
    order = np.random.default_rng(0).permutation(len(dataset))
    return torch.utils.data.Subset(dataset, order.tolist())


def mask_padding(model: Any, embedding: str) -> None:
    raise PartMissing("torch layers get padding masks as call arguments")


def rename_outputs(model: Any, role: str, names: Mapping[str, str]) -> None:
    raise PartMissing("torch models are not compiled with output names")


def give_no_loss(model: Any, names: Sequence[str]) -> None:
    raise PartMissing("torch models are not compiled with a loss per output")
