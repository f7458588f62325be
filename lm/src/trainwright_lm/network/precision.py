"""The number formats for training."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def computing(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """The context for forward passes in this format; weights and optimizer stay in fp32."""
    context: AbstractContextManager[Any] = torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=precision == "bf16"
    )
    return context
