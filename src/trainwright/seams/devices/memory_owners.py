"""Who holds the memory of the machine's GPUs, by the list of NVIDIA's driver; no framework is asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable

from trainwright.stages.setup import Accelerator, OtherProcess

# The driver answers in some 0.1 s while a process uses the GPU; one that does not is not waited for.
MOST_SECONDS = 1.0
_MIB = 2**20
_GPUS = "--query-gpu=index,uuid,memory.total,name"
_PROCESSES = "--query-compute-apps=gpu_uuid,pid,used_memory,process_name"
_ENDED = re.compile(
    r"out of memory|RESOURCE_EXHAUSTED|OOM when allocating|Dst tensor is not initialized", re.IGNORECASE
)
_ON_CPU = re.compile(r"allocator cpu|CPUAllocator", re.IGNORECASE)


def memory_ended(text: str) -> bool:
    """Whether an exception's text says that a device's memory ended, in the words of torch, TensorFlow or JAX."""
    return bool(_ENDED.search(text))


def lacks_gpu_memory(text: str) -> bool:
    """The same of a device that does not say to be the CPU."""
    return memory_ended(text) and not _ON_CPU.search(text)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception says that a device's memory ended; a framework may have raised another from it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if type(error).__name__ in ("ResourceExhaustedError", "OutOfMemoryError"):
            return True
        if isinstance(error, RuntimeError) and memory_ended(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def accelerators(device: str) -> tuple[Accelerator, ...]:
    """The GPUs that this process uses, or where that is not told, may use; empty where it uses none.

    Args:
        device: where the model lies, by torch's names.
    """
    program = shutil.which("nvidia-smi") if device == "cuda" else None
    if program is None:
        return ()
    told = _asked(program, _GPUS, _PROCESSES)
    if told is None:
        return ()
    gpus, processes = (_rows(text) for text in told)
    own = {uuid for uuid, pid, _, _ in processes if pid == str(os.getpid())}
    found = []
    for index, uuid, total, name in gpus:
        if index.isdigit() and total.isdigit() and (uuid in own if own else _is_visible(index, uuid)):
            others = _others(row for row in processes if row[0] == uuid)
            found.append(
                Accelerator(index=int(index), name=name, total_bytes=int(total) * _MIB, others=others)
            )
    return tuple(found)


def _others(rows: Iterable[list[str]]) -> tuple[OtherProcess, ...]:
    """The processes of this machine but our own; in a container the driver may list those outside, us among them."""
    found = [
        OtherProcess(pid=int(pid), name=re.split(r"[/\\]", name)[-1], held_bytes=int(held) * _MIB)
        for _, pid, held, name in rows
        if pid.isdigit() and held.isdigit() and int(pid) != os.getpid() and _exists(int(pid))
    ]
    return tuple(sorted(found, key=lambda p: -p.held_bytes))


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _is_visible(index: str, uuid: str) -> bool:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return True
    names = [one.strip() for one in chosen.split(",")]
    return index in names or any(one.startswith("GPU-") and uuid.startswith(one) for one in names)


def _rows(text: str) -> list[list[str]]:
    """Four fields a line; the last, a name, may have commas of its own."""
    lines = [[f.strip() for f in line.split(",", 3)] for line in text.splitlines()]
    return [fields for fields in lines if len(fields) == 4]


def _asked(program: str, *queries: str) -> list[str] | None:
    """The answers to these queries, asked at once; None where one fails or takes too long."""
    until, started, answers = time.monotonic() + MOST_SECONDS, [], []
    try:
        for query in queries:
            command = [program, query, "--format=csv,noheader,nounits"]
            started.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    errors="replace",
                )
            )
        for one in started:
            text, _ = one.communicate(timeout=max(until - time.monotonic(), 0.01))
            if one.returncode:
                return None
            answers.append(text)
    except (OSError, subprocess.TimeoutExpired):
        return None
    finally:
        for one in started:
            if one.poll() is None:
                one.kill()
                one.wait()
            if one.stdout is not None:
                one.stdout.close()
    return answers
