"""TW004 accelerator-held-by-others: another process uses most of the memory of a GPU that the script needs.

Why it matters: A forgotten notebook or an earlier run keeps its memory until it ends. A batch that fit yesterday no
longer does, and the message blames the script's own last request.
Evidence: The NVIDIA driver's list (NVML) of processes on the GPU, with their names and memory. It is an error if the
script ran out of memory, otherwise a note. TensorFlow without memory growth gets a note next to any other process,
because it takes nearly all the memory that is left.
Error: `failed to allocate memory`
Error: `CUDA_ERROR_OUT_OF_MEMORY`
Error: `Dst tensor is not initialized`
Fix (manual): End that process if nobody needs it, or choose another GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages.setup import Accelerator, OtherProcess, SetupFacts

MOST_SHARE = 0.5
GIB = 2**30
_NAMED = 3


@rule("TW004", Severity.ERROR)
def accelerator_held_by_others(setup: SetupFacts) -> Iterator[Finding]:
    """GPUs whose memory is mostly used by others; any GPU if the script is about to take all that is left."""
    for gpu in setup.accelerators:
        held = sum(p.held_bytes for p in gpu.others)
        most = held > MOST_SHARE * gpu.total_bytes
        if most or (held and setup.takes_all_memory):
            yield _finding(gpu, held, setup)


def _finding(gpu: Accelerator, held: int, setup: SetupFacts) -> Finding:
    first, failure = gpu.others[0], setup.failure
    who = "another process uses" if len(gpu.others) == 1 else f"{len(gpu.others)} other processes use"
    rest = " and others" if len(gpu.others) > _NAMED else ""
    taking = (
        "; this script takes nearly all that is left there, as memory growth is not set"
        if setup.takes_all_memory
        else ""
    )
    listed = ", ".join(_shown(p) for p in gpu.others[:_NAMED]) + rest
    return Finding(
        message=f"{who} {held / GIB:.1f} of the {gpu.total_bytes / GIB:.1f} GiB of GPU {gpu.index} ({gpu.name}): "
        f"{listed}{taking}",
        measured={
            "gpu": gpu.index,
            "held_bytes": held,
            "total_bytes": gpu.total_bytes,
            "pid": first.pid,
            "process": first.name,
            "process_bytes": first.held_bytes,
        },
        where=failure.where if failure else setup.place(Role.TRAIN_CALL, Role.TRAINER),
        proof=Proof(
            f"{failure}, while the driver lists {_shown(first)}" if failure else f"the driver lists {_shown(first)}"
        ),
        fix=Fix(does=_advice(first, setup)),
        severity=Severity.ERROR if failure else Severity.NOTE,
    )


def _shown(process: OtherProcess) -> str:
    return f"{process.name} (pid {process.pid}) with {process.held_bytes / GIB:.1f} GiB"


def _advice(first: OtherProcess, setup: SetupFacts) -> str:
    growth = f"{setup.words.memory_growth}; " if setup.takes_all_memory else ""
    return (
        f"{growth}end process {first.pid} ({first.name}), if nobody needs it, or choose another GPU with "
        "CUDA_VISIBLE_DEVICES"
    )
