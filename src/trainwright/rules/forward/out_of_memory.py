"""The device runs out of memory during a training step."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from trainwright.core import Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import unsafe
from trainwright.stages import ForwardFacts, MemoryFacts, SetupFacts


@rule("TW315", Severity.ERROR)
def out_of_memory(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """What used the memory when it ran out."""
    memory = forward.memory
    if memory is None:
        return
    parts = {
        "weights": memory.weights_bytes,
        "gradients": memory.gradients_bytes,
        "optimizer state": memory.optimizer_bytes,
        "activations": memory.activations_bytes,
    }
    least = {"activations": "at least "} if memory.activations_at_least else {}
    held = ", ".join(f"{name} {least.get(name, '')}{_size(count)}" for name, count in parts.items() if count)
    of_total = f" of {_size(memory.total_bytes)}" if memory.total_bytes else ""
    fits = memory.largest_rows
    yield Finding(
        message=f"a batch of {memory.batch_rows} rows does not fit in memory{of_total}: {held}; "
        + (f"the largest that fits has {fits} rows" if fits else "not even one row fits"),
        measured={
            **{f"{k.replace(' ', '_')}_bytes": v for k, v in parts.items()},
            "batch_rows": memory.batch_rows,
            "largest_rows": fits or 0,
            "device": memory.device,
        },
        where=setup.place(Role.PER_DEVICE_TRAIN_BATCH_SIZE, Role.BATCH_SIZE, Role.ARGUMENTS, Role.TRAINER),
        proof=Proof(
            f"{fits} rows completed forward, backward and an update, {fits + 1} did not"
            if fits
            else "a step with one row ended in the same error"
        ),
        repair=_cut(fits) if fits else None,
        fix=_fix(memory, setup),
    )


def _fix(memory: MemoryFacts, setup: SetupFacts) -> Fix:
    others = "".join(
        f"; process {p.pid} ({p.name}) holds {_size(p.held_bytes)} of GPU {gpu.index}: end it, if nobody needs it"
        for gpu in setup.accelerators
        for p in gpu.others[:1]
    )
    if not memory.largest_rows:
        return Fix(does=f"a smaller model, {setup.words.less_memory}, or an optimizer with less state{others}")
    rows = 2 ** (memory.largest_rows.bit_length() - 1)
    steps = ceil(memory.batch_rows * setup.accumulation / rows)
    smaller = setup.words.smaller_batches.format(rows=rows, steps=steps)
    return unsafe(f"{smaller} for the same update{others}")


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.2f} MB"


def _cut(rows: int) -> Repair:
    return Repair(
        f"keep {rows} rows of a batch",
        Seam.BATCH,
        lambda call: call.replace(**call.tensors.take_rows(call.given, rows)),
    )
