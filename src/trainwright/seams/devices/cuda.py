"""`torch.cuda` and `torch.mps` for a script that would run on such a device: names, streams, clocks, memory."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import types
from collections.abc import Callable
from typing import Any

from trainwright.seams.devices.patching import Patches
from trainwright.seams.devices.redirection import Redirection, current
from trainwright.seams.source.places import is_users

NAME = "no GPU: the CPU stands in"
# An A100's properties, so that a script that queries memory or capabilities can continue.
_BYTES = 80 * 2**30
_CAPABILITY = (8, 0)

_SILENT = ("set_device", "synchronize", "init", "reset_peak_memory_stats", "reset_max_memory_allocated",
           "reset_max_memory_cached", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
           "set_rng_state", "set_rng_state_all", "set_stream", "ipc_collect", "set_sync_debug_mode")  # fmt: skip
_ANSWERS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(_SILENT, lambda: None),
    "current_device": lambda: 0,
    "get_device_name": lambda: NAME,
    "get_device_capability": lambda: _CAPABILITY,
    "get_device_properties": lambda: types.SimpleNamespace(
        name=NAME, total_memory=_BYTES, major=_CAPABILITY[0], minor=_CAPABILITY[1], multi_processor_count=108
    ),
    "mem_get_info": lambda: (_BYTES, _BYTES),
    "memory_summary": lambda: "",
    "get_rng_state": lambda: sys.modules["torch"].get_rng_state(),
    "get_rng_state_all": lambda: [],
    "current_stream": lambda: Stream(),
    "default_stream": lambda: Stream(),
    "can_device_access_peer": lambda: False,
    **dict.fromkeys(("utilization", "temperature", "power_draw", "clock_rate", "memory_usage"), lambda: 0),
}
_OF_MPS = {n: (lambda: None) for n in ("empty_cache", "synchronize", "set_per_process_memory_fraction")} | {
    n: (lambda: 0) for n in ("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory")
}


class Stream:
    """Executes work in order, as the CPU always does."""

    cuda_stream = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def synchronize(self) -> None:
        """Does nothing: no work is pending."""

    wait_stream = wait_event = lambda self, other: None

    def record_event(self, event: Any = None) -> Any:
        """An event recorded now."""
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        """Always true: all work is done."""
        return True


class Event:
    """A point in time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._seconds = time.perf_counter()

    def record(self, stream: Any = None) -> None:
        """Record the current time."""
        self._seconds = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds until another event."""
        return (end._seconds - self._seconds) * 1000

    synchronize = wait = lambda self, *args: None

    def query(self) -> bool:
        """Always true: the event is over."""
        return True


def patch_cuda(torch: Any, patches: Patches) -> None:
    """Answer the user's code, and libraries once the script has asked for the device."""
    cuda = torch.cuda
    for name, answer in _ANSWERS.items():
        if hasattr(cuda, name):
            patches.replace(cuda, name, _answering(getattr(cuda, name), answer))
    for name, stand_in in (("Stream", Stream), ("Event", Event)):
        patches.replace(cuda, name, _standing_in(getattr(cuda, name), stand_in))
    for name in ("device", "device_of", "stream"):
        patches.replace(cuda, name, _standing_in(getattr(cuda, name), _context))
    for name in ("range_push", "range_pop", "mark"):
        patches.replace(cuda.nvtx, name, _answering(getattr(cuda.nvtx, name), lambda: None))
    for name in ("start", "stop"):
        patches.replace(cuda.profiler, name, _answering(getattr(cuda.profiler, name), lambda: None))
    for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Bool", "Char"):
        kept = "Float" if name in ("Half", "BFloat16") else name
        there, here = getattr(cuda, f"{name}Tensor"), getattr(torch, f"{kept}Tensor")
        patches.replace(cuda, f"{name}Tensor", _Type(there, here))
    for name, answer in _OF_MPS.items():
        if hasattr(torch.mps, name):
            patches.replace(torch.mps, name, _answering(getattr(torch.mps, name), answer, "mps"))


def patch_questions(torch: Any, patches: Patches) -> None:
    """Whether there is a device, and how many: the user's code may get an untrue answer."""
    for owner, name, kind, there, not_there in (
        (torch.cuda, "is_available", "cuda", True, False),
        (torch.cuda, "device_count", "cuda", 1, 0),
        (torch.cuda, "is_bf16_supported", "cuda", True, False),
        (torch.backends.mps, "is_available", "mps", True, False),
        (getattr(torch, "xpu", None), "is_available", "xpu", True, False),
        (getattr(torch, "accelerator", None), "is_available", "cuda", True, False),
        (getattr(torch, "accelerator", None), "device_count", "cuda", 1, 0),
        (getattr(torch, "accelerator", None), "current_accelerator", "cuda", torch.device("cuda"), None),
    ):
        if hasattr(owner, name):
            patches.replace(owner, name, _questioned(getattr(owner, name), kind, there, not_there))


def _questioned(original: Callable[..., Any], kind: str, there: Any, not_there: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or kind not in redirection.absent:
            return original(*args, **kwargs)
        return there if redirection.question(kind, sys._getframe(1)) else not_there

    return call


def _stands_in(kind: str) -> Redirection | None:
    """The redirection, if calls are answered for a missing device: the user's, or any once the device was requested."""
    redirection = current()
    if redirection is None or kind not in redirection.absent:
        return None
    if is_users(sys._getframe(2).f_code.co_filename):
        redirection.ask(kind)
    return redirection if redirection.begun else None


def _answering(original: Callable[..., Any], answer: Callable[[], Any], kind: str = "cuda") -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs) if _stands_in(kind) is None else answer()

    return call


def _standing_in(original: Any, other: Callable[..., Any]) -> Any:
    """A class that creates instances of another class if the device is missing."""

    if isinstance(original, type):
        return _either(original, other)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs) if _stands_in("cuda") is None else other(*args, **kwargs)

    return call


def _either(original: Any, other: Callable[..., Any]) -> Any:
    class Either(type(original)):  # type: ignore[misc]
        """Creates instances of either class, and recognizes both as its own."""

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, (original, other) if isinstance(other, type) else original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is not made:  # a user's subclass
                return super().__call__(*args, **kwargs)
            return original(*args, **kwargs) if _stands_in("cuda") is None else other(*args, **kwargs)

    # A subclass of the original's, because torch checks for that.
    made = Either(original.__name__, (original,), {"__module__": original.__module__})
    return made


def _context(*args: Any, **kwargs: Any) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


class _Type:
    """`torch.cuda.FloatTensor`: creates tensors on the CPU if there is no CUDA, and keeps its name."""

    def __init__(self, there: Any, here: Any) -> None:
        self._there, self._here = there, here
        self.__module__, self.__name__ = "torch.cuda", there.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or not redirection.lacks("cuda"):
            return self._there(*args, **kwargs)
        redirection.ask("cuda")
        return self._here(*args, **kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._there)
