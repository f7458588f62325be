"""Repeats a step that ended in an accelerator error on the CPU, where the real error shows.

After a device-side assertion, this process can no longer read the device: the copy takes its values from the host
copies made before.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from trainwright.seams.torch.state import ModelState


def on_cpu(model: nn.Module, state: ModelState) -> nn.Module:
    """A copy of the model on the CPU with its saved values; does not access the device."""
    memo = {id(tensor): _owned(tensor, value) for tensor, value in state.host_values()}
    return copy.deepcopy(model, memo)


def _owned(tensor: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    kept = value.clone()
    return nn.Parameter(kept, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else kept
