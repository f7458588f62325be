"""Letting go of an accelerator's memory."""

from __future__ import annotations

import contextlib
import gc
import sys


def release_memory() -> None:
    """Give back what objects that nobody holds any more took, on the accelerator too."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):  # a device lost to an assertion frees nothing any more
            torch.cuda.empty_cache()
