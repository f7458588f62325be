"""A difference between torch 2.2 and the current version: querying autocast."""

from __future__ import annotations

import torch


def is_autocast_on(device: str) -> bool:
    """Whether computations on a device (cpu, cuda) currently use reduced precision."""
    try:
        return bool(torch.is_autocast_enabled(device))
    except TypeError:  # before torch 2.4
        return bool(torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled())
