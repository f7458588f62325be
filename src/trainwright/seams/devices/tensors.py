"""Tensors and modules sent to a missing device: they stay on the CPU, and half precision becomes float32.

From the first request on, a mode hears every call of torch: no function is replaced that others compare by identity.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch._C import _len_torch_function_stack
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

from trainwright.seams.devices.mixed import LOSSES, compared
from trainwright.seams.devices.redirection import GPU, Redirection, creating, half_name, lacking_cuda, redirect
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.source.places import is_users

_TO = ("device", "dtype", "non_blocking", "copy")
_NEW = ("new_tensor", "new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided")
# These share the memory of their input if it is already on the requested device.
_SHARING = ("as_tensor", "asarray")
_PLAIN_TO = inspect.unwrap(torch.Tensor.to)


def patch() -> None:
    """Patch what may be the first request for a device, what no mode hears of, and files that are loaded onto one."""
    for name in ("to", "cuda", "type", *_NEW):
        redirect(torch.Tensor, name, _asked)
    for name in ("to", "cuda", "to_empty"):
        redirect(torch.nn.Module, name, _module_moved)
    redirect(torch.Tensor, "record_stream", _left_alone)
    redirect(torch, "load", _loaded)
    redirect(torch, "set_default_tensor_type", _typed_by_default)
    context = importlib.import_module("torch.utils._device").DeviceContext
    redirect(context, "__init__", _in_context)
    torch.Generator = creating(torch.Generator, _generator(torch.Generator))


def _asked(redirection: Redirection, original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """A tensor's method that may be the first request for a device; the mode, which is there then, answers it."""
    name = original.__name__
    device = "cuda" if name == "cuda" else kwargs.get("device", args[0] if args and name == "to" else None)
    if name == "type" and _cuda_type(kwargs.get("dtype", args[0] if args else None)):
        device = "cuda"
    redirection.on_cpu(device)
    return original(tensor, *args, **kwargs)


def _module_moved(redirection: Redirection, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    """The same of a module, whose tensors move one by one."""
    device = kwargs.get("device", args[0] if args else None)
    device = "cuda" if original.__name__ == "cuda" else device
    storages = redirection.storages
    if isinstance(device, torch.Tensor):
        return module.to(GPU if storages.on_gpu(device) else device.device, dtype=device.dtype)
    if redirection.lacks(device):
        redirection.ask(device)
        storages.moved = True
        if original.__name__ == "to" and isinstance(device, int):  # the number of a device, which torch looks up
            return module.to("cuda", *args[1:], **{name: one for name, one in kwargs.items() if name != "device"})
    elif device is not None and not isinstance(device, torch.dtype):  # possibly copied from a tensor on the GPU
        storages.unsure = True
    return original(module, *args, **kwargs)


class CpuForGpu(TorchFunctionMode):
    """Answers calls of torch that name a missing device, in one thread."""

    def __init__(self, redirection: Redirection) -> None:
        super().__init__()
        self._redirection = redirection

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        original = inspect.unwrap(func)  # what a watcher has put there has noted the call
        instead = _ANSWERS.get(func.__name__)
        if instead is None and ("device" in given or "pin_memory" in given):
            instead = _made
        return original(*args, **given) if instead is None else instead(self._redirection, original, *args, **given)


_entered = threading.local()


def set_mode(redirection: Redirection | None) -> None:
    """Answer all calls of this thread from now on; None: no more."""
    if getattr(_entered, "by", None) is redirection:
        return
    _entered.by = redirection
    stack = [_pop_mode() for _ in range(_len_torch_function_stack())][::-1]
    modes = [mode for mode in stack if not isinstance(mode, CpuForGpu)]
    own = [CpuForGpu(redirection)] if redirection is not None else []
    at = sum(type(mode).__name__ == "DeviceContext" for mode in modes)  # which have to lie below all others
    for mode in (*modes[:at], *own, *modes[at:]):
        _push_mode(mode)


def _moved(redirection: Redirection, move: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """`tensor.to(…)` on the CPU; as on a GPU, it copies what was not there yet."""
    storages = redirection.storages
    if args and isinstance(args[0], torch.Tensor):
        other = args[0]
        if storages.on_gpu(other) and not storages.on_gpu(tensor):
            given = {"dtype": other.dtype, **dict(zip(_TO[2:], args[1:])), **kwargs, "copy": True}
            return storages.put(move(tensor, **given), GPU)
        storages.forget(tensor)
        return move(tensor, *args, **kwargs)
    names = _TO[1:] if args and isinstance(args[0], torch.dtype) else _TO
    given = {**dict(zip(names, args)), **kwargs}
    device, dtype = given.get("device"), given.get("dtype")
    if not redirection.lacks(device):
        if dtype is not None:
            given["dtype"] = _whole(redirection, dtype)
        if device is not None and storages.on_gpu(tensor):
            given["copy"] = True
        elif device is not None:  # possibly copied from a tensor that would be on the GPU
            storages.forget(tensor)
        return move(tensor, **given) if given else move(tensor, *args)
    redirection.ask(device)
    given |= {"device": "cpu", "dtype": _whole(redirection, dtype or tensor.dtype)}
    given["copy"] = given.get("copy") or not storages.on_gpu(tensor)
    return storages.put(move(tensor, **given), GPU)


def _to_gpu(redirection: Redirection, original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    return _moved(redirection, _PLAIN_TO, self, "cuda")


def _to_cpu(redirection: Redirection, original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    if redirection.storages.on_gpu(tensor):
        return _moved(redirection, _PLAIN_TO, tensor, "cpu")
    return original(tensor, *args, **kwargs)


def _typed(redirection: Redirection, original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    name = _cuda_type(kwargs.get("dtype", args[0] if args else None))
    if name is None:
        return original(tensor, *args, **kwargs)
    dtype = original(torch.empty(0), f"torch.{name}").dtype
    return _moved(redirection, _PLAIN_TO, tensor, "cuda", dtype=dtype)


def _cuda_type(dtype: Any) -> str | None:
    """The name of a CUDA tensor type (FloatTensor); None for any other."""
    name = dtype if isinstance(dtype, str) else f"{getattr(dtype, '__module__', '')}.{getattr(dtype, '__name__', '')}"
    return name.removeprefix("torch.cuda.") if name.startswith("torch.cuda.") else None


def _whole(redirection: Redirection, dtype: Any) -> Any:
    """float32 in place of half precision."""
    if half_name(dtype) is None:
        return dtype
    redirection.ask_for_half(dtype)
    return torch.float32


def _kept_whole(redirection: Redirection, original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """`half()` acts as `float()`."""
    redirection.ask_for_half(original.__name__)
    return self.float()


def _left_alone(redirection: Redirection, original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    return self


def _made(redirection: Redirection, original: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that creates tensors, using an existing device."""
    if kwargs.get("pin_memory"):
        kwargs["pin_memory"] = False
    if not redirection.lacks(kwargs.get("device")):
        return original(*args, **kwargs)
    redirection.ask(kwargs["device"])
    kwargs["device"] = "cpu"
    if kwargs.get("dtype") is not None:
        kwargs["dtype"] = _whole(redirection, kwargs["dtype"])
    made = original(*args, **kwargs)
    if half_name(made.dtype) is not None:
        made = made.float()
    if original.__name__ in _SHARING and not redirection.storages.on_gpu(made):
        made = made.clone()
    return redirection.storages.put(made, GPU)


def _loaded(redirection: Redirection, load: Any, f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
    asked = [map_location, *(map_location.values() if isinstance(map_location, dict) else ())]
    found = next((d for d in asked if redirection.lacks(d)), None)
    if found is None:
        given = _mapping(map_location) if callable(map_location) else map_location
        try:
            return load(f, given, *args, **kwargs)
        except RuntimeError as error:
            if map_location is not None or "deserialize object on a" not in str(error):
                raise
        if hasattr(f, "seek"):
            f.seek(0)
    redirection.ask(found or "cuda")
    redirection.storages.unsure = True
    return load(f, "cpu", *args, **kwargs)


def _mapping(given: Callable[..., Any]) -> Callable[..., Any]:
    def keep(storage: Any, location: str) -> Any:
        try:
            return given(storage, location)
        except (AssertionError, RuntimeError):  # storage.cuda()
            return storage

    return keep


def _in_context(redirection: Redirection, original: Any, self: Any, device: Any) -> None:
    """`with torch.device("cuda")` and `torch.set_default_device("cuda")`."""
    redirection.storages.unsure |= redirection.lacks(device)
    passed_on(original, self, redirection.on_cpu(device))


def _typed_by_default(redirection: Redirection, original: Any, t: Any) -> None:
    name = _cuda_type(t)
    if name is not None:
        redirection.ask("cuda")
        redirection.storages.unsure = True
        t = torch.FloatTensor if name == "HalfTensor" else getattr(torch, name)
    original(t)


def _generator(own: Any) -> Callable[..., Any]:
    def make(device: Any = "cpu") -> Any:
        redirection = lacking_cuda()
        return own(device if redirection is None else redirection.on_cpu(device))

    return make


def _got(redirection: Redirection, original: Any, tensor: Any, *args: Any) -> Any:
    """An attribute of a tensor; `is_cuda` for the user's code: whether it would be true."""
    if original.__self__ is not torch.Tensor.is_cuda or not redirection.storages.on_gpu(tensor):
        return original(tensor, *args)
    frame = sys._getframe(1)
    while frame.f_code.co_name == "__torch_function__" and frame.f_back is not None:  # ours, and other modes
        frame = frame.f_back
    return is_users(frame.f_code.co_filename)


# What answers in the place of a function, by its name.
_ANSWERS: dict[str, Callable[..., Any]] = {
    "to": _moved,
    "cuda": _to_gpu,
    "cpu": _to_cpu,
    "type": _typed,
    "half": _kept_whole,
    "bfloat16": _kept_whole,
    "pin_memory": _left_alone,
    "__get__": _got,
    **dict.fromkeys(LOSSES, compared),
}
