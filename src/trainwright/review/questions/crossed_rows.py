"""TW1007 crossed-rows: the model's answer for a row depends on the other rows of its batch.

Why it matters: The answer for one row alone is another one than in training and evaluation, and rows lend each other what
they should not know. Axes of rows and of positions are often exchanged so.
Evidence: After the run, in evaluation mode, the same rows with fewer others beside them.
Fix (manual): Look at reshape, view, transpose, softmax and normalisation along the first axis, and at batch_first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record
from trainwright.review.rows import trained_models

# So many rows come again, and this share of them behind another row: the first axis is no time.
FEWEST_AGAIN, SHUFFLED = 20, 0.5
# Rounding is a thousandth of it; measured on 236 scripts.
CHANGE = 0.01
FEWEST_ROWS = 4


@rule("TW1007", Severity.WARNING)
def crossed_rows(record: Record) -> Iterator[Finding]:
    """An answer that changes with the other rows."""
    models = trained_models(record)
    for probe in record.probes:
        if probe.model not in models or probe.rows < FEWEST_ROWS:
            continue
        is_known = probe.change == "rows" or (probe.change == "earlier rows" and _is_shuffled(record, probe.model))
        if is_known and probe.effect > CHANGE:
            yield Finding(
                message=f"in evaluation mode a row's answer changes by {probe.effect:.0%} with the other rows of its batch; it "
                f"should not change",
                measured={"change": probe.effect, "rows": probe.rows},
                where=record.where,
                proof=Proof(f"{probe.rows} rows, answered together and with half of them left out"),
                fix=Fix(
                    does="look for an operation along the first axis: reshape, softmax, normalisation, batch_first"
                ),
            )
            return


def _is_shuffled(record: Record, model: int) -> bool:
    """Whether training rows that come again do so behind other rows: a recurrence over them is none over time."""
    before: dict[int, int] = {}
    again: list[bool] = []
    for one in record.answers:
        keys = one.keys.tolist() if one.trains and one.model == model and one.keys is not None else []
        for last, key in itertools.pairwise(keys):
            again += [before[key] != last] if key in before else []
            before[key] = last
    return len(again) >= FEWEST_AGAIN and sum(again) > SHUFFLED * len(again)
