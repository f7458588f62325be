"""A stand-in for NVIDIA's driver on machines without one: functions of pynvml that tell of two GPUs of 80 GiB.

What they return and raise are pynvml's own structures and errors, as its documentation has them: memory in bytes, None for
that of a process where it is not available, NVMLError_NotFound for the name of one that is gone.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import pynvml

TOTAL_MIB = 81920
MIB = 2**20
UUIDS = ("GPU-aa", "GPU-bb")

Process = tuple[int, int, int | None, str | None]
"""The GPU that it is on, its number, the MiB that it holds there, and its name."""


def functions(*processes: Process, error: int | None = None, seconds: float = 0.0) -> dict[str, Callable[..., Any]]:
    """Functions of pynvml by their names.

    Args:
        error: what the driver answers when it is asked for the processes of a GPU.
        seconds: how long it takes to answer at all.
    """
    names = {pid: name for _, pid, _, name in processes}

    def running(gpu: int) -> list[Any]:
        if error is not None:
            raise pynvml.NVMLError(error)
        return [_told(pid, held) for index, pid, held, _ in processes if index == gpu]

    def name(pid: int) -> str:
        found = names.get(pid)
        if found is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return found

    return {
        "nvmlInit": lambda: time.sleep(seconds),
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: len(UUIDS),
        "nvmlDeviceGetHandleByIndex": range(len(UUIDS)).__getitem__,
        "nvmlDeviceGetUUID": UUIDS.__getitem__,
        "nvmlDeviceGetName": lambda gpu: "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetMemoryInfo": lambda gpu: pynvml.c_nvmlMemory_t(total=TOTAL_MIB * MIB),
        "nvmlDeviceGetComputeRunningProcesses": running,
        "nvmlSystemGetProcessName": name,
    }


def _told(pid: int, held_mib: int | None) -> Any:
    told = pynvml.nvmlStructToFriendlyObject(pynvml.c_nvmlProcessInfo_t(pid=pid))
    told.usedGpuMemory = None if held_mib is None else held_mib * MIB
    return told


def another_process_holds(mib: int) -> None:
    """From here on, and for this process alone: its parent holds so much of GPU 0."""
    parent, own = (0, os.getppid(), mib, "/opt/conda/bin/python"), (0, os.getpid(), 500, "python")
    vars(pynvml).update(functions(parent, own))
