"""TW216 unbatched-data: fit() expects batches, but the data set yields single rows.

Why it matters: Training stops with a message about a layer's number of dimensions that does not mention the data set.
If a layer accepts the row anyway, its features or tokens count as the rows of a batch.
Evidence: A target without any dimension, so there can be no batch dimension; the same rows are accepted when batched in
memory.
Error: `expected min_ndim=2, found ndim=1`
Error: `Invalid input shape for input`
Fix (safe): Batch the data set: `dataset.batch(32)`. A generator or PyDataset must yield arrays whose first dimension is
the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import BatchFacts, SetupFacts

# Keras's own, where fit forms the batches.
ROWS = 32


@rule("TW216", Severity.ERROR)
def unbatched_data(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Targets without a batch dimension, for a loss that expects a batch."""
    single = [k for k in batch.target_keys or () if k in batch.tensors and batch.tensors[k].shape == ()]
    if not batch.is_row or not single or not batch.targets_wanted_by:
        return
    shapes = ", ".join(f"{k} {t.shape}" for k, t in batch.tensors.items())
    yield Finding(
        message=f"fit() expects batches, but the data yields single rows: the first element has {shapes} and no batch dimension",
        measured={"shapes": shapes, "target": single[0]},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"{single[0]} is a single number, without a batch dimension"),
        repair=_batched(),
        fix=Fix(
            does=f"batch the data set: .batch({ROWS}) on it; a generator must yield arrays whose first dimension is the batch",
            safety=Safety.SAFE,
        ),
    )


def _batched() -> Repair:
    def change(call: Call) -> Call:
        return call.replace(train_dataset=call.part("train_dataset").batched(ROWS))

    return Repair(f"put single rows together in batches of {ROWS}", Seam.TRAINER, change)
