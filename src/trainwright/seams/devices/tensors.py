"""Tensors and modules sent to a missing device: they stay on the CPU, and half precision becomes float32."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from trainwright.seams.devices.redirection import GPU, Redirection, half_name, lacking_cuda, redirect
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.listening.doors import put_in
from trainwright.seams.source.places import is_users

_TO = ("device", "dtype", "non_blocking", "copy")
_NEW = ("new_tensor", "new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided")
_LIKE = ("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "randint_like")
# These share the memory of their input if it is already on the requested device.
_SHARING = ("as_tensor", "asarray")
# Kept forever: torch.jit identifies its built-in functions by address, which must not be reused.
_wrapped: list[Any] = []


def patch() -> None:
    """Patch the methods that move a tensor or a module, or create one on a device, and files that are loaded onto one."""
    tensor, module = torch.Tensor, torch.nn.Module
    of_both = (("cuda", _to_gpu), ("half", _kept_whole), ("bfloat16", _kept_whole))
    of_tensor = (("to", _moved), ("cpu", _to_cpu), ("type", _typed), *((name, _made) for name in _NEW))
    table: tuple[tuple[Any, Iterable[tuple[str, Callable[..., Any]]]], ...] = (
        (tensor, (*of_both, *of_tensor, ("pin_memory", _left_alone), ("record_stream", _left_alone))),
        (module, (*of_both, ("to", _module_moved), ("to_empty", _emptied))),
        (torch, (("load", _loaded), ("set_default_tensor_type", _typed_by_default))),
    )
    for owner, answers in table:
        for name, instead in answers:
            redirect(owner, name, instead)
    context = importlib.import_module("torch.utils._device")
    context._device_constructors()  # stores the original functions before any of them is wrapped
    redirect(context.DeviceContext, "__init__", _in_context)
    put_in(torch, "Generator", _generator(torch.Generator))
    put_in(tensor, "is_cuda", _is_cuda(tensor.is_cuda))


def patch_factories() -> None:
    """Patch the functions that create tensors, once a missing device is requested: others compare them by identity."""
    builtins = importlib.import_module("torch.jit._builtins")
    known = {f.__name__: f for f in importlib.import_module("torch.utils._device")._device_constructors()}
    for name in (*known, *_LIKE):
        for owner in (torch, torch.fft, torch.nested):
            original = getattr(owner, name, None)
            if original is None or original is not known.get(name, original):
                continue
            _wrapped.append(redirect(owner, name, _made))
            if schema := builtins._find_builtin(original):
                builtins._register_builtin(_wrapped[-1], schema)


def _moved(redirection: Redirection, move: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """`tensor.to(…)` on the CPU; as on a GPU, it copies what was not there yet."""
    if redirection.moving:
        return move(tensor, *args, **kwargs)
    with redirection.one_move():
        return _moved_once(redirection, move, tensor, args, kwargs)


def _moved_once(redirection: Redirection, move: Any, tensor: Any, args: Any, kwargs: Any) -> Any:
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
        if redirection.begun and half_name(dtype) is not None:
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
    """`cuda()` of a tensor or a module."""
    return self.to("cuda")


def _to_cpu(redirection: Redirection, original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    return tensor.to("cpu") if redirection.storages.on_gpu(tensor) else original(tensor, *args, **kwargs)


def _typed(redirection: Redirection, original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    name = _cuda_type(kwargs.get("dtype", args[0] if args else None))
    if name is None:
        return original(tensor, *args, **kwargs)
    return tensor.to("cuda", dtype=original(torch.empty(0), f"torch.{name}").dtype)


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
    """`half()` of a tensor or module; acts as `float()` once a missing device was requested."""
    if not redirection.begun:
        return original(self, *args, **kwargs)
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


def _module_moved(redirection: Redirection, move: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    device = kwargs.get("device", args[0] if args else None)
    if isinstance(device, torch.Tensor):
        there = GPU if redirection.storages.on_gpu(device) else device.device
        return module.to(there, dtype=device.dtype)
    if not redirection.lacks(device):
        if redirection.begun:
            args = tuple(torch.float32 if half_name(a) else a for a in args)
            kwargs = {k: torch.float32 if half_name(v) else v for k, v in kwargs.items()}
        move(module, *args, **kwargs)
        if device is not None and not isinstance(device, torch.dtype):
            _note_placed(module, redirection, None)
        return module
    redirection.ask(device)
    given = {**dict(zip(_TO[:3], args)), **kwargs, "device": "cpu"}
    halves = {t.dtype for t in [*module.parameters(), *module.buffers()] if half_name(t.dtype) is not None}
    dtype = given.get("dtype") or next(iter(halves), None)
    if dtype is not None:
        given["dtype"] = _whole(redirection, dtype)
    move(module, **given)
    _note_placed(module, redirection, GPU)
    return module


def _emptied(redirection: Redirection, original: Any, module: Any, *, device: Any, **kwargs: Any) -> Any:
    return original(module, device=redirection.on_cpu(device), **kwargs)


def _note_placed(module: Any, redirection: Redirection, device: str | None) -> None:
    """Record that a module was moved: to the GPU, or to a device copied from a tensor that would be there."""
    storages = redirection.storages
    for tensor in [*module.parameters(), *module.buffers()]:
        if device is None:
            storages.forget(tensor)
        else:
            storages.put(tensor, device)
    storages.moved |= device is not None
    storages.unsure |= device is None


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


def _generator(own: Any) -> Any:
    class OfAnyDevice(type(own)):  # type: ignore[misc]
        """`torch.Generator`, which all generators are instances of."""

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, own)

        def __call__(cls, device: Any = "cpu") -> Any:
            redirection = lacking_cuda()
            return own(device if redirection is None else redirection.on_cpu(device))

    return OfAnyDevice("Generator", (), {"__module__": "torch"})


def _is_cuda(original: Any) -> property:
    """`x.is_cuda` for the user's code: whether it would be true."""

    def is_cuda(self: Any) -> bool:
        redirection = lacking_cuda()
        if redirection is not None and redirection.storages.on_gpu(self):
            return is_users(sys._getframe(1).f_code.co_filename)
        return bool(original.__get__(self))

    return property(is_cuda)
