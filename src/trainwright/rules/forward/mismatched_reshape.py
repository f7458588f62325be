"""TW325 mismatched-reshape: a reshape in the model's code is written for rows of another size.

Why it matters: The forward pass stops at a view or reshape whose numbers were computed for other images or layers. The
message gives the total of all rows, not what each row has.
Evidence: The size that the reshape expects for a row, and the size that a row has; other numbers of rows fail too.
Error: `shape '…' is invalid for input of size`
Fix (manual): Flatten each row with x.flatten(1), and build the next layer for its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.frameworks.error_texts import INVALID_RESHAPE
from trainwright.rules.layer_sizes import failed_layer
from trainwright.stages import BatchFacts, ForwardFacts


@rule("TW325", Severity.ERROR, after="TW302")
def mismatched_reshape(forward: ForwardFacts, batch: BatchFacts) -> Iterator[Finding]:
    """A reshape of (rows, …) whose other sizes are not those of a row."""
    failed = failed_layer(forward)
    found = INVALID_RESHAPE.search(failed[1].message) if failed is not None else None
    if failed is None or found is None or not batch.rows:
        return
    layer, failure = failed
    shape = tuple(int(n) for n in found["shape"].split(","))
    size, wanted = int(found["size"]), prod(shape[1:])
    if size % batch.rows or shape[0] not in (-1, batch.rows) or wanted < 1 or wanted == size // batch.rows:
        return
    came = size // batch.rows
    yield Finding(
        message=f"a reshape in {layer.name or 'the model'} ({layer.kind}) expects {wanted} values for each row, but a row "
        f"has {came}",
        measured={"expected": wanted, "came": came, "rows": batch.rows, "shape": str(shape)},
        where=failure.where,
        proof=Proof(f"a batch of {batch.rows} has {size} values: {failure}"),
        fix=Fix(
            does=f"flatten each row, x.flatten(1), and build the next layer for {came} values; or change what comes before "
            f"so that a row has {wanted}"
        ),
    )
