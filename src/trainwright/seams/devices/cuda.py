"""`torch.cuda` and `torch.mps` for a script that would run on such a device: names, streams, clocks, memory."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import torch

from trainwright.seams.devices.redirection import current, lacking_cuda
from trainwright.seams.listening.doors import put_in
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
    "get_rng_state": torch.get_rng_state,
    "get_rng_state_all": lambda: [],
    "current_stream": lambda: Stream(),
    "default_stream": lambda: Stream(),
    "can_device_access_peer": lambda: False,
    **dict.fromkeys(("utilization", "temperature", "power_draw", "clock_rate", "memory_usage"), lambda: 0),
}
_OF_MPS = {n: (lambda: None) for n in ("empty_cache", "synchronize", "set_per_process_memory_fraction")} | {
    n: (lambda: 0) for n in ("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory")
}


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
        """Always true: all work is done."""
        return True


class Stream(contextlib.nullcontext[Any]):
    """Executes work in order, as the CPU always does."""

    cuda_stream = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(self)

    synchronize = wait_stream = wait_event = lambda self, *args: None
    query = Event.query

    def record_event(self, event: Any = None) -> Any:
        """An event recorded now."""
        event = event or Event()
        event.record()
        return event


def patch() -> None:
    """Answer the user's code, and libraries once the script has asked for the device."""
    cuda = torch.cuda
    silent = dict.fromkeys(("range_push", "range_pop", "mark", "start", "stop"), lambda: None)
    for owner, answers, kind in (
        (cuda, _ANSWERS, "cuda"),
        (cuda.nvtx, silent, "cuda"),
        (cuda.profiler, silent, "cuda"),
        (torch.mps, _OF_MPS, "mps"),
    ):
        for name, answer in answers.items():
            if hasattr(owner, name):
                put_in(owner, name, _answering(getattr(owner, name), answer, kind))
    for name, stand_in in (("Stream", Stream), ("Event", Event), ("device", _context), ("device_of", _context)):
        put_in(cuda, name, _either(getattr(cuda, name), stand_in))
    put_in(cuda, "stream", _answering(cuda.stream, contextlib.nullcontext))
    for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Bool", "Char"):
        kept = "Float" if name in ("Half", "BFloat16") else name
        there, here = getattr(cuda, f"{name}Tensor"), getattr(torch, f"{kept}Tensor")
        put_in(cuda, f"{name}Tensor", _Type(there, here))
    # Whether there is a device, and how many: the user's code may get an untrue answer.
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
            put_in(owner, name, _questioned(getattr(owner, name), kind, there, not_there))


def _questioned(original: Callable[..., Any], kind: str, there: Any, not_there: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or kind not in redirection.absent:
            return original(*args, **kwargs)
        return there if redirection.question(kind, sys._getframe(1)) else not_there

    return call


def _stands_in(kind: str) -> bool:
    """Whether calls are answered for a missing device: the user's, or any once the device was requested."""
    redirection = current()
    if redirection is None or kind not in redirection.absent:
        return False
    if is_users(sys._getframe(2).f_code.co_filename):
        redirection.ask(kind)
    return redirection.begun


def _answering(original: Callable[..., Any], answer: Callable[[], Any], kind: str = "cuda") -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return answer() if _stands_in(kind) else original(*args, **kwargs)

    return call


def _either(original: Any, other: Callable[..., Any]) -> Any:
    """A class that creates instances of another class if the device is missing."""

    class Either(type(original)):  # type: ignore[misc]
        """Creates instances of either class, and recognizes both as its own."""

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, (original, other) if isinstance(other, type) else original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is not made:  # a user's subclass
                return super().__call__(*args, **kwargs)
            return other(*args, **kwargs) if _stands_in("cuda") else original(*args, **kwargs)

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
        redirection = lacking_cuda()
        if redirection is None:
            return self._there(*args, **kwargs)
        redirection.ask("cuda")
        return self._here(*args, **kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._there)
