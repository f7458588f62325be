"""Other processes: those that hold the GPU, and those that train together."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import OtherProcess, SetupFacts
from trainwright.stages.setup import Accelerator

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
            yield _held(gpu, held, setup)


def _held(gpu: Accelerator, held: int, setup: SetupFacts) -> Finding:
    first, failure = gpu.others[0], setup.failure
    who = "another process uses" if len(gpu.others) == 1 else f"{len(gpu.others)} other processes use"
    rest = " and others" if len(gpu.others) > _NAMED else ""
    taking = (
        "; this script takes nearly all that is left there, as memory growth is not set"
        if setup.takes_all_memory
        else ""
    )
    listed = ", ".join(_named(p) for p in gpu.others[:_NAMED]) + rest
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
            f"{failure}, while the driver lists {_named(first)}" if failure else f"the driver lists {_named(first)}"
        ),
        fix=Fix(does=_advice(first, setup)),
        severity=Severity.ERROR if failure else Severity.NOTE,
    )


def _named(process: OtherProcess) -> str:
    return f"{process.name} (pid {process.pid}) with {process.held_bytes / GIB:.1f} GiB"


def _advice(first: OtherProcess, setup: SetupFacts) -> str:
    growth = f"{setup.words.memory_growth}; " if setup.takes_all_memory else ""
    return (
        f"{growth}end process {first.pid} ({first.name}), if nobody needs it, or choose another GPU with "
        "CUDA_VISIBLE_DEVICES"
    )


@rule("TW005", Severity.ERROR)
def ranks_see_different_data(setup: SetupFacts) -> Iterator[Finding]:
    """A sampler that splits rows between ranks whose data sets differ."""
    ranks = [r for r in setup.ranks if not r.failure and r.rows is not None]
    # Different sets on each rank are fine if no sampler splits them again.
    if len(ranks) < 2 or any(r.believed < 2 for r in ranks) or not all(r.sharded for r in ranks):
        return
    lengths = [r.rows for r in ranks]
    kinds = len({r.samples for r in ranks if r.samples})
    if len(set(lengths)) > 1:
        shown = ", ".join(f"{r.rows:,} rows on rank {r.rank}" for r in ranks)
        message = f"the training sets of the {len(ranks)} ranks differ in length: {shown}"
    elif kinds > 1:
        message = f"the rows of the training set differ between the {len(ranks)} ranks: {kinds} different sets of {ranks[0].rows:,} rows"
    else:
        return
    yield Finding(
        message=message,
        measured={
            "ranks": len(ranks),
            **{f"rows_of_rank_{r.rank}": r.rows or 0 for r in ranks},
            "different_sets": kinds,
        },
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.LOADER, Role.TRAINER),
        proof=Proof(
            "hashes of rows at the same indices: " + ", ".join(f"rank {r.rank}: {r.samples or 'none'}" for r in ranks)
        ),
        fix=Fix(
            does="build the same rows in the same order on each rank: use a fixed seed for sampling, and sort file listings"
        ),
    )
