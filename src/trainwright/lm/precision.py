"""In which number format a training computes: bf16 where the processor multiplies it faster than fp32."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Literal

import torch


def chosen(precision: Literal["auto", "fp32", "bf16"], device: torch.device) -> str:
    """fp32 or bf16."""
    if precision != "auto":
        return precision
    return "bf16" if has_bf16(device) else "fp32"


def has_bf16(device: torch.device) -> bool:
    """Whether the device computes in bf16 itself, rather than by way of fp32.

    On CPUs with AVX512-BF16 or AMX it gains 1.2 to 1.8 times; where it is emulated it loses.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    faster = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return bool(faster and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def computing(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """The context of forward passes in this format; weights and optimizer stay in fp32."""
    context: AbstractContextManager[Any] = torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=precision == "bf16"
    )
    return context
