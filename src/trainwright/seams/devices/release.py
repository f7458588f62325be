"""Releases an accelerator's memory."""

from __future__ import annotations

import contextlib
import gc
import sys


def release_memory() -> None:
    """Free the memory of unreferenced objects, including on the accelerator."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):  # a device lost to an assertion frees nothing
            torch.cuda.empty_cache()
