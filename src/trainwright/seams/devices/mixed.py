"""Tensors on two devices, which a GPU would reject: reported only if both locations are certain.

They are certain in plain torch, in a script that never asked whether there is a GPU: libraries, and user code, place
batches according to the answer that there is none.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import torch

from trainwright.seams.devices.redirection import GPU, HOST, Redirection, Storages, current, redirect
from trainwright.seams.failures.blame import of_pipeline, passed_on
from trainwright.seams.listening.doors import take_away

# Functions that torch.nn.functional's losses call; unlike the losses, nobody compares them by identity. Outputs come
# first.
_LOSSES = ("cross_entropy_loss", "nll_loss_nd", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
           "binary_cross_entropy")  # fmt: skip
# If one of these is loaded, a library moves batches; Accelerate and Lightning are detected on their own.
_MOVERS = ("ignite", "fastai", "skorch")


def patch() -> None:
    """Note where loaders create batches, so that layers and losses can reject one that was left on the CPU."""
    loader = importlib.import_module("torch.utils.data.dataloader")
    for owner in (loader._SingleProcessDataLoaderIter, loader._MultiProcessingDataLoaderIter):
        redirect(owner, "_next_data", _loaded)


def patch_layers() -> None:
    """Make layers and losses reject what was left on the CPU, from the first request for a device on: every call of a module
    is slower by hooks."""
    before = torch.nn.modules.module.register_module_forward_pre_hook(_enters)
    after = torch.nn.modules.module.register_module_forward_hook(_left)
    take_away(before.remove)
    take_away(after.remove)
    for name in _LOSSES:
        redirect(torch._C._nn, name, _compared)
    redirect(torch, "binary_cross_entropy_with_logits", _compared)


def _loaded(redirection: Redirection, original: Any, self: Any) -> Any:
    batch = passed_on(original, self)
    if (storages := _sure()) is not None:
        _note(storages, batch)
    return batch


def _sure() -> Storages | None:
    """The record of locations, while it is reliable."""
    redirection = current()
    if redirection is None or not redirection.begun or redirection.questions or not redirection.asked:
        return None
    return None if redirection.storages.unsure or any(m in sys.modules for m in _MOVERS) else redirection.storages


def _note(storages: Storages, value: Any) -> None:
    """Record that a batch's tensors are where the loader created them."""
    if isinstance(value, torch.Tensor):
        if storages.device(value) is None:
            storages.put(value, HOST)
    elif isinstance(value, dict):
        for inside in value.values():
            _note(storages, inside)
    elif isinstance(value, (list, tuple)):
        for inside in value:
            _note(storages, inside)


def _enters(module: Any, args: Any) -> None:
    """Check the input of one of torch's own layers."""
    weight = _weight(module)
    storages = _sure() if weight is not None and args else None
    if storages is None or not hasattr(args[0], "untyped_storage"):
        return
    theirs, own = storages.device(args[0]), storages.device(weight)
    if own is None and theirs == GPU and not storages.moved:
        own = HOST
    _refuse(own, theirs, f"the weight of {type(module).__name__} and its input")


def _left(module: Any, args: Any, output: Any) -> None:
    """Record that the output of a layer on the GPU is there too."""
    weight = _weight(module)
    storages = _sure() if weight is not None else None
    if storages is not None and storages.on_gpu(weight) and hasattr(output, "untyped_storage"):
        storages.put(output, GPU)


def _weight(module: Any) -> Any:
    """The first parameter of one of torch's own layers; None for any other module."""
    if not type(module).__module__.startswith("torch.nn.modules"):
        return None
    return next((p for p in module._parameters.values() if p is not None), None)


def _compared(redirection: Redirection, original: Any, *args: Any, **kwargs: Any) -> Any:
    storages = _sure() if len(args) > 1 else None
    if storages is not None and getattr(args[1], "ndim", 0) > 0:
        _refuse(storages.device(args[0]), storages.device(args[1]), "the outputs and the targets of the loss")
    return original(*args, **kwargs)


def _refuse(one: str | None, other: str | None, which: str) -> None:
    """Raise torch's error if both devices are known and differ."""
    if one is not None and other is not None and one != other:
        raise of_pipeline(
            RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{one} and {other}! ({which})"
            )
        )
