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

from trainwright.seams.devices.redirection import creating, current
from trainwright.seams.source.places import is_users

NAME = "no GPU: the CPU stands in"
# An A100's properties, so that a script that queries memory or capabilities can continue.
_BYTES = 80 * 2**30
_CAPABILITY = (8, 0)

_SILENT = ("set_device", "synchronize", "init", "reset_peak_memory_stats", "reset_max_memory_allocated",
           "reset_max_memory_cached", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
           "set_rng_state", "set_rng_state_all", "set_stream", "ipc_collect", "set_sync_debug_mode")  # fmt: skip
# Of calls that do something, what they answer; a function is called for it.
_ANSWERS: dict[str, Any] = {
    **dict.fromkeys(_SILENT, None),
    "current_device": 0,
    "get_device_name": NAME,
    "get_device_capability": _CAPABILITY,
    "get_device_properties": types.SimpleNamespace(
        name=NAME, total_memory=_BYTES, major=_CAPABILITY[0], minor=_CAPABILITY[1], multi_processor_count=108
    ),
    "mem_get_info": (_BYTES, _BYTES),
    "memory_summary": "",
    "get_rng_state": torch.get_rng_state,
    "get_rng_state_all": list,
    "current_stream": lambda: Stream(),
    "default_stream": lambda: Stream(),
    "stream": contextlib.nullcontext,
    "can_device_access_peer": False,
    **dict.fromkeys(("utilization", "temperature", "power_draw", "clock_rate", "memory_usage"), 0),
}
_OF_MPS = {
    **dict.fromkeys(("empty_cache", "synchronize", "set_per_process_memory_fraction"), None),
    **dict.fromkeys(("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory"), 0),
}
_OF_PROFILERS = dict.fromkeys(("range_push", "range_pop", "mark", "start", "stop"), None)
_TYPES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Bool", "Char")


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
    cuda, mps = torch.cuda, torch.backends.mps
    xpu, accelerator = getattr(torch, "xpu", None), getattr(torch, "accelerator", None)
    for owner, answers, kind in (
        (cuda, _ANSWERS, "cuda"),
        (cuda.nvtx, _OF_PROFILERS, "cuda"),
        (cuda.profiler, _OF_PROFILERS, "cuda"),
        (torch.mps, _OF_MPS, "mps"),
    ):
        for name, answer in answers.items():
            if hasattr(owner, name):
                setattr(owner, name, _answering(getattr(owner, name), answer, kind))
    context = contextlib.nullcontext
    for name, other in (("Stream", Stream), ("Event", Event), ("device", context), ("device_of", context)):
        original = getattr(cuda, name)
        setattr(cuda, name, creating(original, _either(original, other), bases=(original,), other=other))
    for name in _TYPES:
        kept = "Float" if name in ("Half", "BFloat16") else name
        original, here = getattr(cuda, f"{name}Tensor"), getattr(torch, f"{kept}Tensor")
        setattr(cuda, f"{name}Tensor", creating(original, _either(original, here)))
    # Whether there is a device, and how many: the user's code may get an untrue answer.
    for owner, name, kind, there, not_there in (
        (cuda, "is_available", "cuda", True, False),
        (cuda, "device_count", "cuda", 1, 0),
        (cuda, "is_bf16_supported", "cuda", True, False),
        (mps, "is_available", "mps", True, False),
        (xpu, "is_available", "xpu", True, False),
        (accelerator, "is_available", "cuda", True, False),
        (accelerator, "device_count", "cuda", 1, 0),
        (accelerator, "current_accelerator", "cuda", torch.device("cuda"), None),
    ):
        if hasattr(owner, name):
            setattr(owner, name, _questioned(getattr(owner, name), kind, there, not_there))


def _questioned(original: Callable[..., Any], kind: str, there: Any, not_there: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        redirection = current()
        if redirection is None or kind not in redirection.absent:
            return original(*args, **kwargs)
        return there if redirection.question(kind, sys._getframe(1)) else not_there

    return call


def _stands_in(kind: str, depth: int = 2) -> bool:
    """Whether calls are answered for a missing device: the user's, or any once the device was requested.

    Args:
        depth: how many frames up the caller is.
    """
    redirection = current()
    if redirection is None or kind not in redirection.absent:
        return False
    if is_users(sys._getframe(depth).f_code.co_filename):
        redirection.ask(kind)
    return redirection.begun


def _answering(original: Callable[..., Any], answer: Any, kind: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _stands_in(kind):
            return original(*args, **kwargs)
        return answer() if callable(answer) else answer

    return call


def _either(original: Any, other: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: (other if _stands_in("cuda", 3) else original)(*args, **kwargs)
