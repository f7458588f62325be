"""TW1006 widened-loss: the loss compares each answer with the labels of all rows.

Why it matters: Outputs of shape (n, 1) and labels of shape (n,) are widened to (n, n) without an error, and the model learns
the mean of the labels.
Evidence: The shapes that a loss was given during the run.
Fix (manual): Give both the same shape, for example with squeeze(-1) on the one that has a dimension more.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record


@rule("TW1006", Severity.WARNING)
def widened_loss(record: Record) -> Iterator[Finding]:
    """A loss whose arguments were widened against each other."""
    if record.widened is None or not _both_widen(*record.widened):
        return
    outputs, labels = record.widened
    longer = "outputs" if len(outputs) > len(labels) else "labels"
    yield Finding(
        message=f"a loss widens its arguments to all pairs of rows: outputs {outputs} against labels {labels}",
        measured={"outputs": str(outputs), "labels": str(labels)},
        where=record.where,
        proof=Proof("the shapes that the loss was given"),
        fix=Fix(does=f"give outputs and labels the same shape, for example with squeeze(-1) on the {longer}"),
    )


def _both_widen(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether the result is larger than each: a single number, or one row against many, is compared on purpose."""
    try:
        whole = prod(np.broadcast_shapes(one, other))
    except ValueError:
        return False
    return whole > max(prod(one), prod(other))
