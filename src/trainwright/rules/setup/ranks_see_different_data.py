"""TW005 ranks-see-different-data: the data sets of a multi-process training differ.

Why it matters: The sampler splits row indices between the ranks, but an index means a different row on each, so some
rows are used twice and some never. If the lengths differ, the rank with more batches waits forever.
Evidence: The length of each rank's training set, and hashes of rows at the same indices.
Fix (manual): Build the same set, in the same order, on each rank: use a fixed seed for sampling and shuffling, and sort
file listings.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import SetupFacts


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
