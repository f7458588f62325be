"""Transforms of torch.func (vmap, grad and others): tensors computed inside them must not be kept."""

from __future__ import annotations

import sys


def within_transform() -> bool:
    """Whether a transform is active: its tensors are wrappers and must not outlive it."""
    torch = sys.modules.get("torch")
    transforms = getattr(torch._C, "_functorch", None) if torch is not None else None
    return transforms is not None and transforms.peek_interpreter_stack() is not None
