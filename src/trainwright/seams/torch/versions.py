"""Differences between torch 2.2 and the current version: hooks on all modules, and querying autocast."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook

_GIVES_KEYWORDS = "with_kwargs" in inspect.signature(register_module_forward_hook).parameters


def register_after_calls(told: Callable[[Any, Any, Any, Any], None]) -> Any:
    """Call a function after each module call, failed or not, with module, arguments, keywords, output."""
    if _GIVES_KEYWORDS:
        return register_module_forward_hook(told, with_kwargs=True, always_call=True)

    # Up to torch 2.5, such a hook does not receive the keywords; they are a variable of its caller.
    def call(module: Any, args: Any, output: Any) -> None:
        told(module, args, sys._getframe(1).f_locals.get("kwargs", {}), output)

    return register_module_forward_hook(call, always_call=True)


def is_autocast_on(device: str) -> bool:
    """Whether computations on a device (cpu, cuda) currently use reduced precision."""
    try:
        return bool(torch.is_autocast_enabled(device))
    except TypeError:  # before torch 2.4
        return bool(torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled())
