"""Torchvision for another kind of PyTorch: it can be imported where its compiled operators cannot be loaded."""

from types import ModuleType
from typing import Any

_KEPT: list[Any] = []


def fill(module: ModuleType) -> None:
    """Declare the operators that torchvision says more about as it is imported."""
    if not module._has_ops():
        import torch

        declared = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(declared)
