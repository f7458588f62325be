"""torch's mixed precision and multi-GPU functions, for a script on a machine without either."""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

from trainwright.seams.devices.patching import Patches
from trainwright.seams.devices.redirection import Redirection, current

# The CPU needs no loss scaling, and the scale never grows.
_UNSCALED: dict[str, Any] = {"init_scale": 1.0, "growth_interval": 2**31 - 1}
_OF_SCALER = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
# The variables that torchrun sets for single-process training.
LAUNCHED = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}  # fmt: skip


def patch_precision(torch: Any, patches: Patches) -> None:
    """Make autocast a no-op for a missing device; a GradScaler scales by 1 and still checks how it is used."""
    autocast = torch.amp.autocast_mode.autocast
    of_autocast = autocast.__init__

    @functools.wraps(of_autocast)
    def init_autocast(
        self: Any, device_type: Any, dtype: Any = None, enabled: bool = True, *args: Any, **kwargs: Any
    ) -> None:
        redirection = current()
        if redirection is None or not redirection.lacks(device_type):
            of_autocast(self, device_type, dtype, enabled, *args, **kwargs)
            return
        if enabled:
            redirection.ask_for_half(dtype or torch.float16)
        of_autocast(self, "cuda", None, False, *args, **kwargs)

    patches.replace(autocast, "__init__", init_autocast)
    if hasattr(torch.amp, "GradScaler"):
        _patch_scaler(torch, patches)
    else:
        _patch_scaler_of_cuda(torch, patches)


def _patch_scaler(torch: Any, patches: Patches) -> None:
    scaler = torch.amp.GradScaler
    of_scaler = scaler.__init__

    @functools.wraps(of_scaler)
    def init_scaler(self: Any, device: Any = "cuda", *args: Any, **kwargs: Any) -> None:
        redirection = current()
        if redirection is None or not redirection.lacks(device):
            of_scaler(self, device, *args, **kwargs)
            return
        given = {**dict(zip(_OF_SCALER, args)), **kwargs}
        if given.get("enabled", True):
            redirection.ask_for_half(torch.float16)
        given["enabled"] = given.get("enabled", True) and redirection.begun
        of_scaler(self, "cpu", **{**given, **_UNSCALED})

    patches.replace(scaler, "__init__", init_scaler)


def _patch_scaler_of_cuda(torch: Any, patches: Patches) -> None:
    """Before torch 2.3, a GradScaler requires CUDA: without it, it exists and does nothing."""
    scaler = torch.cuda.amp.GradScaler
    original = scaler.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        redirection = current()
        if redirection is None or not redirection.lacks("cuda"):
            original(self, *args, **kwargs)
            return
        if dict(zip(_OF_SCALER, args), **kwargs).get("enabled", True):
            redirection.ask_for_half(torch.float16)
        original(self, enabled=False)

    patches.replace(scaler, "__init__", init)


def patch_parallel(torch: Any, patches: Patches) -> None:
    """Run DistributedDataParallel on the CPU, and replace nccl groups with gloo."""
    ddp = torch.nn.parallel.DistributedDataParallel
    original = ddp.__init__

    @functools.wraps(original)
    def init(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        redirection = current()
        if redirection is not None and redirection.lacks("cuda"):
            redirection.storages.unsure = True
            if device_ids is not None:
                redirection.ask("cuda")
            device_ids = output_device = None
        original(self, module, device_ids, output_device, *args, **kwargs)

    patches.replace(ddp, "__init__", init)
    _patch_data_parallel(torch, patches)
    if torch.distributed.is_available():
        _patch_groups(torch, patches)


def _patch_data_parallel(torch: Any, patches: Patches) -> None:
    """DataParallel moves its inputs to its GPUs by itself."""
    owner = torch.nn.DataParallel
    original = owner.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if (redirection := current()) is not None:
            redirection.storages.unsure = True
        original(self, *args, **kwargs)

    patches.replace(owner, "__init__", init)


def _patch_groups(torch: Any, patches: Patches) -> None:
    own = torch.distributed.init_process_group

    @functools.wraps(own)
    def init_process_group(backend: Any = None, init_method: Any = None, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.lacks("cuda") or "nccl" not in str(backend):
            return own(backend, init_method, *args, **kwargs)
        redirection.ask_for("nccl")
        kwargs.pop("device_id", None)
        if _is_alone(redirection, init_method, kwargs) and not args:
            given = {k: v for k, v in kwargs.items() if k not in ("rank", "world_size", "store")}
            store = torch.distributed.HashStore()
            return own("gloo", rank=0, world_size=1, store=store, **given)
        return own("gloo", init_method, *args, **kwargs)

    patches.replace(torch.distributed, "init_process_group", init_process_group)
    patches.replace(
        importlib.import_module("torch.distributed.distributed_c10d"), "init_process_group", init_process_group
    )


def _is_alone(redirection: Redirection, init_method: Any, given: dict[str, Any]) -> bool:
    """Whether a process would join a group through a launcher's variables that no launcher set."""
    named = init_method not in (None, "env://") or given.get("store") is not None
    return not named and (redirection.alone or not {"RANK", "WORLD_SIZE"} & set(os.environ))
