"""An accelerator's own errors, and which processes use the memory of the machine's GPUs, according to NVIDIA's driver (pynvml),
without a framework."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from typing import Any

from trainwright.seams.failures.blame import chain_of
from trainwright.stages import OtherProcess
from trainwright.stages.setup import Accelerator

# The driver answers within about 0.1 s while a process uses the GPU; beyond this, do not wait.
MOST_SECONDS = 1.0
_ENDED = re.compile(
    r"out of memory|RESOURCE_EXHAUSTED|OOM when allocating|Dst tensor is not initialized", re.IGNORECASE
)
_HIDING_CAUSES = ("CUDA error", "device-side assert", "CUBLAS_STATUS", "CUDNN_STATUS", "HIP error", "MPS backend")
_ON_CPU = re.compile(r"allocator cpu|CPUAllocator", re.IGNORECASE)


def memory_ended(text: str) -> bool:
    """Whether an exception's text says that a device ran out of memory, in torch's, TensorFlow's or JAX's words."""
    return bool(_ENDED.search(text))


def lacks_gpu_memory(text: str) -> bool:
    """The same, for a device that is not identified as the CPU."""
    return memory_ended(text) and not _ON_CPU.search(text)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception, or the one it was raised from, says that a device ran out of memory."""
    return any(
        type(one).__name__ in ("ResourceExhaustedError", "OutOfMemoryError")
        or (isinstance(one, RuntimeError) and memory_ended(str(one)))
        for one in chain_of(error)
    )


def is_device_error(error: BaseException | None) -> bool:
    """Whether an exception comes from the accelerator and hides its cause; running out of memory does not count."""
    return isinstance(error, RuntimeError) and not memory_ended(str(error)) and hides_cause(str(error))


def hides_cause(message: str) -> bool:
    """Whether an accelerator's message names no cause; another device's does."""
    return any(word in message for word in _HIDING_CAUSES)


def accelerators(device: str) -> tuple[Accelerator, ...]:
    """The GPUs that this process uses, or if that is unknown, may use; empty if it uses none.

    Args:
        device: where the model is, by torch's names.
    """
    told: list[Accelerator] = []
    if device == "cuda":
        asking = threading.Thread(target=lambda: told.extend(_told()), daemon=True)
        asking.start()
        asking.join(MOST_SECONDS)
    return tuple(told)


def _told() -> list[Accelerator]:
    """The driver's current data; empty if there is no driver, it fails, or its library is missing."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        try:
            return _listed(pynvml)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return []


def _listed(driver: Any) -> list[Accelerator]:
    gpus = [driver.nvmlDeviceGetHandleByIndex(index) for index in range(driver.nvmlDeviceGetCount())]
    processes = [driver.nvmlDeviceGetComputeRunningProcesses(gpu) for gpu in gpus]
    own = {index for index, listed in enumerate(processes) if os.getpid() in {p.pid for p in listed}}
    return [
        Accelerator(
            index=index,
            name=driver.nvmlDeviceGetName(gpu),
            total_bytes=driver.nvmlDeviceGetMemoryInfo(gpu).total,
            others=_others(driver, processes[index]),
        )
        for index, gpu in enumerate(gpus)
        if (index in own if own else _is_visible(index, driver.nvmlDeviceGetUUID(gpu)))
    ]


def _others(driver: Any, processes: Iterable[Any]) -> tuple[OtherProcess, ...]:
    """The machine's other processes; in a container, the driver may list outside ones, including this process."""
    found = [
        OtherProcess(pid=p.pid, name=_name(driver, p.pid), held_bytes=p.usedGpuMemory)
        for p in processes
        if p.usedGpuMemory is not None and p.pid != os.getpid() and _exists(p.pid)
    ]
    return tuple(sorted(found, key=lambda p: -p.held_bytes))


def _name(driver: Any, pid: int) -> str:
    try:
        name = str(driver.nvmlSystemGetProcessName(pid))
    except (driver.NVMLError, UnicodeDecodeError):  # it ended just now, or its name is not UTF-8
        return "process"
    return re.split(r"[/\\]", name)[-1]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process
        return True
    return True


def _is_visible(index: int, uuid: str) -> bool:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return True
    names = [one.strip() for one in chosen.split(",")]
    return str(index) in names or any(one.startswith("GPU-") and uuid.startswith(one) for one in names)
