"""Tensors and modules sent to a missing device: they stay on the CPU, and half precision becomes float32."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from trainwright.seams.devices.patching import Patches
from trainwright.seams.devices.redirection import GPU, Redirection, current, half_name
from trainwright.seams.failures.blame import passed_on
from trainwright.seams.source.places import is_users

_TO = ("device", "dtype", "non_blocking", "copy")
_NEW = ("new_tensor", "new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided")
_LIKE = ("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "randint_like")
# These share the memory of their input if it is already on the requested device.
_SHARING = ("as_tensor", "asarray")
# Kept forever: torch.jit identifies its built-in functions by address, which must not be reused.
_wrapped: list[Any] = []


def patch_tensors(torch: Any, patches: Patches) -> None:
    """Patch the methods that move a tensor or a module, or create a tensor on another's device."""
    _patch_moves(torch, patches)
    _patch_properties(torch, patches)
    for name in _NEW:
        patches.replace(torch.Tensor, name, _making(torch, getattr(torch.Tensor, name), name))
    _patch_modules(torch, patches)
    _patch_generator(torch, patches)
    _patch_loading(torch, patches)
    _patch_context(torch, patches)


def patch_factories(torch: Any, patches: Patches) -> None:
    """Patch the functions that create tensors, once a missing device is requested: others compare them by identity."""
    builtins = importlib.import_module("torch.jit._builtins")
    known = {f.__name__: f for f in importlib.import_module("torch.utils._device")._device_constructors()}
    for name in (*known, *_LIKE):
        for owner in (torch, torch.fft, torch.nested):
            original = getattr(owner, name, None)
            if original is None or original is not known.get(name, original):
                continue
            wrapper = _making(torch, original, name)
            if schema := builtins._find_builtin(original):
                builtins._register_builtin(wrapper, schema)
            _wrapped.append(wrapper)
            patches.replace(owner, name, wrapper)


def _patch_moves(torch: Any, patches: Patches) -> None:
    move, to_cuda, to_cpu, as_type = (getattr(torch.Tensor, n) for n in ("to", "cuda", "cpu", "type"))

    @functools.wraps(move)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.absent or redirection.moving:
            return move(self, *args, **kwargs)
        with redirection.one_move():
            return _moved(torch, move, redirection, self, args, kwargs)

    @functools.wraps(to_cuda)
    def cuda(self: Any, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.lacks("cuda"):
            return to_cuda(self, device, *args, **kwargs)
        return to(self, "cuda")

    @functools.wraps(to_cpu)
    def cpu(self: Any, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is not None and redirection.storages.on_gpu(self):
            return to(self, "cpu")
        return to_cpu(self, *args, **kwargs)

    @functools.wraps(as_type)
    def type_(self: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        name = _cuda_type(dtype) if redirection is not None and redirection.lacks("cuda") else None
        if name is None:
            return as_type(self, dtype, *args, **kwargs) if dtype is not None else as_type(self)
        return to(self, "cuda", dtype=as_type(torch.empty(0), f"torch.{name}").dtype)

    for name, value in (("to", to), ("cuda", cuda), ("cpu", cpu), ("type", type_)):
        patches.replace(torch.Tensor, name, value)
    for name in ("half", "bfloat16"):
        patches.replace(torch.Tensor, name, _kept_whole(getattr(torch.Tensor, name)))
    for name in ("pin_memory", "record_stream"):
        patches.replace(torch.Tensor, name, _left_alone(getattr(torch.Tensor, name)))


def _cuda_type(dtype: Any) -> str | None:
    """The name of a CUDA tensor type (FloatTensor); None for any other."""
    name = dtype if isinstance(dtype, str) else f"{getattr(dtype, '__module__', '')}.{getattr(dtype, '__name__', '')}"
    return name.removeprefix("torch.cuda.") if name.startswith("torch.cuda.") else None


def _moved(torch: Any, move: Any, redirection: Redirection, tensor: Any, args: Any, kwargs: Any) -> Any:
    """`tensor.to(…)` on the CPU; as on a GPU, it copies what was not there yet."""
    storages = redirection.storages
    if args and isinstance(args[0], torch.Tensor):
        other = args[0]
        if storages.on_gpu(other) and not storages.on_gpu(tensor):
            given = {"dtype": other.dtype, **dict(zip(_TO[2:], args[1:])), **kwargs, "copy": True}
            return storages.put(move(tensor, **given), GPU)
        storages.forget(tensor)
        return move(tensor, *args, **kwargs)
    first = "dtype" if args and isinstance(args[0], torch.dtype) else "device"
    names = ("dtype", "non_blocking", "copy") if first == "dtype" else _TO
    given = {**dict(zip(names, args)), **kwargs}
    device, dtype = given.get("device"), given.get("dtype")
    if not redirection.lacks(device):
        if redirection.begun and half_name(dtype) is not None:
            redirection.ask_for_half(dtype)
            given["dtype"] = torch.float32
        if device is not None and storages.on_gpu(tensor):
            given["copy"] = True
        elif device is not None:  # possibly copied from a tensor that would be on the GPU
            storages.forget(tensor)
        return move(tensor, **given) if given else move(tensor, *args)
    redirection.ask(device)
    given |= {"device": "cpu", "dtype": _whole(torch, redirection, dtype or tensor.dtype)}
    given["copy"] = given.get("copy") or not storages.on_gpu(tensor)
    return storages.put(move(tensor, **given), GPU)


def _whole(torch: Any, redirection: Redirection, dtype: Any) -> Any:
    """float32 in place of half precision."""
    if half_name(dtype) is None:
        return dtype
    redirection.ask_for_half(dtype)
    return torch.float32


def _kept_whole(original: Callable[..., Any]) -> Callable[..., Any]:
    """`half()` of a tensor or module; acts as `float()` once a missing device was requested."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.begun:
            return original(self, *args, **kwargs)
        redirection.ask_for_half(original.__name__)
        return self.float()

    return call


def _left_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.lacks("cuda"):
            return original(self, *args, **kwargs)
        return self

    return call


def _patch_properties(torch: Any, patches: Patches) -> None:
    """`x.is_cuda` for the user's code: whether it would be true."""
    original = torch.Tensor.is_cuda

    def is_cuda(self: Any) -> bool:
        redirection = current()
        if redirection is not None and redirection.storages.on_gpu(self):
            return is_users(sys._getframe(1).f_code.co_filename)
        return bool(original.__get__(self))

    patches.replace(torch.Tensor, "is_cuda", property(is_cuda))


def _making(torch: Any, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function that creates tensors, using an existing device."""

    @functools.wraps(original)
    def passed_on(*args: Any, **kwargs: Any) -> Any:
        redirection = current() if kwargs else None
        if redirection is None or not redirection.absent:
            return original(*args, **kwargs)
        if kwargs.get("pin_memory") and redirection.lacks("cuda"):
            kwargs["pin_memory"] = False
        if not redirection.lacks(kwargs.get("device")):
            return original(*args, **kwargs)
        redirection.ask(kwargs["device"])
        kwargs["device"] = "cpu"
        if kwargs.get("dtype") is not None:
            kwargs["dtype"] = _whole(torch, redirection, kwargs["dtype"])
        made = original(*args, **kwargs)
        if half_name(made.dtype) is not None:
            made = made.float()
        if name in _SHARING and not redirection.storages.on_gpu(made):
            made = made.clone()
        return redirection.storages.put(made, GPU)

    return passed_on


def _patch_modules(torch: Any, patches: Patches) -> None:
    owner = torch.nn.Module
    move, to_cuda, to_empty = owner.to, owner.cuda, owner.to_empty

    @functools.wraps(move)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.absent:
            return move(self, *args, **kwargs)
        device = kwargs.get("device", args[0] if args else None)
        if isinstance(device, torch.Tensor):
            return to(self, GPU if redirection.storages.on_gpu(device) else device.device, dtype=device.dtype)
        if not redirection.lacks(device):
            if redirection.begun:
                args = tuple(torch.float32 if half_name(a) else a for a in args)
                kwargs = {k: torch.float32 if half_name(v) else v for k, v in kwargs.items()}
            result = move(self, *args, **kwargs)
            if device is not None and not isinstance(device, torch.dtype):
                _note_placed(self, redirection, None)
            return result
        redirection.ask(device)
        given = {**dict(zip(_TO[:3], args)), **kwargs}
        halves = {t.dtype for t in [*self.parameters(), *self.buffers()] if half_name(t.dtype) is not None}
        dtype = given.get("dtype") or next(iter(halves), None)
        if dtype is not None:
            given["dtype"] = _whole(torch, redirection, dtype)
        move(self, **{**given, "device": "cpu"})
        _note_placed(self, redirection, GPU)
        return self

    @functools.wraps(to_cuda)
    def cuda(self: Any, device: Any = None) -> Any:
        redirection = current()
        if redirection is None or not redirection.lacks("cuda"):
            return to_cuda(self, device)
        return self.to("cuda")

    @functools.wraps(to_empty)
    def empty(self: Any, *, device: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is not None and redirection.lacks(device):
            redirection.ask(device)
            device = "cpu"
        return to_empty(self, device=device, **kwargs)

    for name, value in (("to", to), ("cuda", cuda), ("to_empty", empty)):
        patches.replace(owner, name, value)
    for name in ("half", "bfloat16"):
        patches.replace(owner, name, _kept_whole(getattr(owner, name)))


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


def _patch_generator(torch: Any, patches: Patches) -> None:
    own = torch.Generator

    class OfAnyDevice(type(own)):  # type: ignore[misc]
        """`torch.Generator`, which all generators are instances of."""

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, own)

        def __call__(cls, device: Any = "cpu") -> Any:
            redirection = current()
            if redirection is not None and redirection.lacks(device):
                redirection.ask(device)
                device = "cpu"
            return own(device)

    patches.replace(torch, "Generator", OfAnyDevice("Generator", (), {"__module__": "torch"}))


def _patch_loading(torch: Any, patches: Patches) -> None:
    load = torch.load

    @functools.wraps(load)
    def loading(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.lacks("cuda"):
            return load(f, map_location, *args, **kwargs)
        asked = [map_location, *(map_location.values() if isinstance(map_location, dict) else ())]
        found = next((d for d in asked if redirection.lacks(d)), None)
        if found is not None:
            redirection.ask(found)
            redirection.storages.unsure = True
            return load(f, "cpu", *args, **kwargs)
        if callable(map_location):
            return load(f, _mapping(map_location), *args, **kwargs)
        try:
            return load(f, map_location, *args, **kwargs)
        except RuntimeError as error:
            if map_location is not None or "deserialize object on a" not in str(error):
                raise
        redirection.ask("cuda")
        redirection.storages.unsure = True
        if hasattr(f, "seek"):
            f.seek(0)
        return load(f, "cpu", *args, **kwargs)

    patches.replace(torch, "load", loading)


def _mapping(given: Callable[..., Any]) -> Callable[..., Any]:
    def keep(storage: Any, location: str) -> Any:
        try:
            return given(storage, location)
        except (AssertionError, RuntimeError):  # storage.cuda()
            return storage

    return keep


def _patch_context(torch: Any, patches: Patches) -> None:
    """`with torch.device("cuda")` and `torch.set_default_device("cuda")`."""
    module = importlib.import_module("torch.utils._device")
    module._device_constructors()  # stores the original functions before any of them is wrapped
    original = module.DeviceContext.__init__

    @functools.wraps(original)
    def init(self: Any, device: Any) -> None:
        redirection = current()
        if redirection is not None and redirection.lacks(device):
            redirection.ask(device)
            redirection.storages.unsure = True
            device = "cpu"
        passed_on(original, self, device)

    patches.replace(module.DeviceContext, "__init__", init)
    set_type = torch.set_default_tensor_type

    @functools.wraps(set_type)
    def set_default_tensor_type(t: Any) -> None:
        redirection = current()
        name = _cuda_type(t) if redirection is not None and redirection.lacks("cuda") else None
        if name is None or redirection is None:
            set_type(t)
            return
        redirection.ask("cuda")
        redirection.storages.unsure = True
        set_type(torch.FloatTensor if name == "HalfTensor" else getattr(torch, name))

    patches.replace(torch, "set_default_tensor_type", set_default_tensor_type)
