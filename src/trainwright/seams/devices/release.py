"""An accelerator's own errors are told from others."""

from __future__ import annotations

_DEVICE_ERRORS = ("CUDA error", "device-side assert", "CUBLAS_STATUS", "CUDNN_STATUS", "HIP error", "MPS backend")


def is_device_error(error: BaseException | None) -> bool:
    """Whether an exception comes from the accelerator and hides its cause; running out of memory does not count."""
    return isinstance(error, RuntimeError) and not is_memory_short(error) and hides_cause(str(error))


def hides_cause(message: str) -> bool:
    """Whether an accelerator's message names no cause; another device's does."""
    return any(word in message for word in _DEVICE_ERRORS)


def is_memory_short(error: BaseException | None) -> bool:
    """Whether an exception says that a device's memory is full."""
    return "out of memory" in str(error).lower()
