"""torch's mixed precision and multi-GPU functions, for a script on a machine without either."""

from __future__ import annotations

import importlib
import os
from typing import Any

import torch

from trainwright.seams.devices.redirection import Redirection, redirect
from trainwright.seams.listening.doors import put_in

# The CPU needs no loss scaling, and the scale never grows.
_UNSCALED: dict[str, Any] = {"init_scale": 1.0, "growth_interval": 2**31 - 1}
_OF_SCALER = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")


def patch() -> None:
    """Make autocast a no-op for a missing device; a GradScaler scales by 1 and still checks how it is used.

    DistributedDataParallel runs on the CPU, and gloo replaces nccl groups.
    """
    has_scaler = hasattr(torch.amp, "GradScaler")
    for owner, instead in (
        (torch.amp.autocast_mode.autocast, _autocast),
        (torch.amp.GradScaler if has_scaler else torch.cuda.amp.GradScaler, _scaler if has_scaler else _scaler_of_cuda),
        (torch.nn.parallel.DistributedDataParallel, _distributed),
        (torch.nn.DataParallel, _parallel),
    ):
        redirect(owner, "__init__", instead)
    if torch.distributed.is_available():
        joined = redirect(torch.distributed, "init_process_group", _joined)
        put_in(importlib.import_module("torch.distributed.distributed_c10d"), "init_process_group", joined)


def _autocast(redirection: Redirection, original: Any, self: Any, device_type: Any, *args: Any, **kwargs: Any) -> None:
    if not redirection.lacks(device_type):
        original(self, device_type, *args, **kwargs)
        return
    given = {**dict(zip(("dtype", "enabled", "cache_enabled"), args)), **kwargs}
    if given.get("enabled", True):
        redirection.ask_for_half(given.get("dtype") or torch.float16)
    original(self, "cuda", **{**given, "dtype": None, "enabled": False})


def _scaler(
    redirection: Redirection, original: Any, self: Any, device: Any = "cuda", *args: Any, **kwargs: Any
) -> None:
    if not redirection.lacks(device):
        original(self, device, *args, **kwargs)
        return
    given = {**dict(zip(_OF_SCALER, args)), **kwargs}
    if given.get("enabled", True):
        redirection.ask_for_half(torch.float16)
    given["enabled"] = given.get("enabled", True) and redirection.begun
    original(self, "cpu", **{**given, **_UNSCALED})


def _scaler_of_cuda(redirection: Redirection, original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    """Before torch 2.3, a GradScaler requires CUDA: without it, it exists and does nothing."""
    if dict(zip(_OF_SCALER, args), **kwargs).get("enabled", True):
        redirection.ask_for_half(torch.float16)
    original(self, enabled=False)


def _distributed(redirection: Redirection, original: Any, self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
    redirection.storages.unsure = True
    if (args[0] if args else kwargs.get("device_ids")) is not None:
        redirection.ask("cuda")
    given = {k: v for k, v in kwargs.items() if k not in ("device_ids", "output_device")}
    original(self, module, None, None, *args[2:], **given)


def _parallel(redirection: Redirection, original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    """DataParallel moves its inputs to its GPUs by itself."""
    redirection.storages.unsure = True
    original(self, *args, **kwargs)


def _joined(
    redirection: Redirection, own: Any, backend: Any = None, init_method: Any = None, *args: Any, **kwargs: Any
) -> Any:
    if "nccl" not in str(backend):
        return own(backend, init_method, *args, **kwargs)
    redirection.ask_for("nccl")
    kwargs.pop("device_id", None)
    # Whether a process would join a group through a launcher's variables that no launcher set.
    is_named = init_method not in (None, "env://") or kwargs.get("store") is not None or bool(args)
    if not is_named and (redirection.alone or not {"RANK", "WORLD_SIZE"} & set(os.environ)):
        given = {k: v for k, v in kwargs.items() if k not in ("rank", "world_size", "store")}
        return own("gloo", rank=0, world_size=1, store=torch.distributed.HashStore(), **given)
    return own("gloo", init_method, *args, **kwargs)
