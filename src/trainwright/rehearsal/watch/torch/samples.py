"""Tensors among the arguments of a call, samples of their values, and fingerprints of weights."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from trainwright.rehearsal.record import Floats

# Values of a tensor in a fingerprint.
OF_FINGERPRINT = 64
# A prime: sampled places are scattered, as a stride meets one dead column only.
SCATTER = 7919
# Running statistics move without an update, and so are no part of the weights' fingerprint.
_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def is_plain(value: Any) -> bool:
    """Whether it is a tensor with values of its own: not one of a transform (vmap), of a trace, or without storage."""
    if not isinstance(value, torch.Tensor):
        return False
    if type(value) not in (torch.Tensor, torch.nn.Parameter) and (
        type(value).__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl
    ):
        return False
    return (
        value.layout == torch.strided
        and value.device.type != "meta"
        and not torch._C._functorch.is_functorch_wrapped_tensor(value)
    )


def plain(value: Any) -> Any:
    """The tensor without its graph and without a class of its own."""
    detached = value.detach()
    return detached if type(detached) is torch.Tensor else detached.as_subclass(torch.Tensor)


def version_of(tensor: Any) -> int:
    """How often the tensor was changed in place; -1 where that is not counted."""
    return -1 if tensor.is_inference() else int(tensor._version)


@functools.lru_cache(maxsize=4096)
def _places(count: int, most: int, device: Any) -> Any:
    with torch.inference_mode(False):
        return torch.from_numpy((np.arange(most, dtype=np.int64) * SCATTER) % count).to(device)


def sample(tensor: Any, most: int) -> Any:
    """Some of its values, scattered over it; a copy on its own device."""
    flat = plain(tensor).reshape(-1)
    if flat.numel() <= most:
        return flat.clone()
    return flat[_places(flat.numel(), most, flat.device)]


@functools.lru_cache(maxsize=256)
def _factors(count: int) -> Floats:
    factors: Floats = np.cos(1.0 + 1.7 * np.arange(count))
    return factors


def fingerprint(tensors: Iterable[Any]) -> float:
    """A number that is the same for the same values, in whatever order the tensors come and however often."""
    kept = [sample(t, OF_FINGERPRINT).float() for t in tensors if is_plain(t) and t.is_floating_point() and t.numel()]
    if not kept:
        return 0.0
    devices = {one.device for one in kept}
    values = (torch.cat(kept) if len(devices) == 1 else torch.cat([one.cpu() for one in kept])).cpu().numpy()
    found, at = set(), 0
    with np.errstate(all="ignore"):
        for one in kept:
            part = values[at : at + len(one)].astype(np.float64)
            at += len(one)
            found.add(float(part @ _factors(len(part))) + 1e-3 * len(part))
    total = float(sum(sorted(found)))
    return round(total, 6) if np.isfinite(total) else float("inf")


def weights_of(module: Any) -> Iterator[Any]:
    """A module's parameters and the buffers that it saves, but for running statistics."""
    for part in module.modules():
        yield from (p for p in part._parameters.values() if p is not None)
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set and name not in _STATISTICS:
                yield buffer


def holder_of(module: Any) -> Any:
    """The innermost module with all of a module's parameters: a loss that holds a model is no other model."""
    inner = [one for one in module.children() if next(one.parameters(), None) is not None]
    is_outer = len(inner) == 1 and all(p is None for p in module._parameters.values())
    return holder_of(inner[0]) if is_outer else module


def weights_in(state: Mapping[str, Any]) -> list[Any]:
    """The same of a state: `state_dict()`."""
    return [v for k, v in state.items() if not str(k).endswith(_STATISTICS)]


def state_in(value: Any, depth: int = 0) -> Mapping[str, Any] | None:
    """The weights in what is saved or copied: a state, a model, or a dict that holds one; None: none."""
    if isinstance(value, torch.nn.Module):
        is_plain_state = (
            type(value).state_dict is torch.nn.Module.state_dict and next(value.parameters(), None) is not None
        )
        return dict(value.state_dict()) if is_plain_state else None  # metrics are modules without weights
    if not isinstance(value, Mapping) or not value:
        return None
    if all(isinstance(v, torch.Tensor) for v in value.values()):
        named = all(isinstance(k, str) for k in value) and any(
            v.is_floating_point() and v.dim() for v in value.values()
        )
        return value if named else None
    if depth >= 2 or "param_groups" in value:
        return None
    chosen = sorted(value.items(), key=lambda item: "model" not in str(item[0]) and "state" not in str(item[0]))
    return next((s for k, v in chosen if "optim" not in str(k) and (s := state_in(v, depth + 1)) is not None), None)


def named_tensors(args: Any, kwargs: Any, most: int = 24) -> list[tuple[str, Any]]:
    """The tensors among the arguments of a call or in its result, by name; labels are none."""
    found: list[tuple[str, Any]] = []

    def add(name: str, value: Any, depth: int) -> None:
        if len(found) >= most:
            return
        if isinstance(value, torch.Tensor):
            if is_plain(value):
                found.append((name, value))
        elif depth < 3 and hasattr(value, "items") and hasattr(value, "keys"):
            for key, inner in value.items():
                if "label" not in str(key):
                    add(f"{name}.{key}" if name else str(key), inner, depth + 1)
        elif depth < 3 and isinstance(value, (list, tuple)) and len(value) <= most:
            for index, inner in enumerate(value):
                add(f"{name}[{index}]" if name else str(index), inner, depth + 1)

    for index, value in enumerate(args):
        add(str(index), value, 0)
    for key, value in kwargs.items():
        if "label" not in key:
            add(key, value, 0)
    return found
