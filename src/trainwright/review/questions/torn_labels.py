"""TW1005 torn-labels: the model is given equal inputs with unequal labels.

Why it matters: No model can answer equal inputs differently. What told them apart was lost on the way to the model: text that
became one unknown token, a column that was cut off, images that were scaled to nothing. Or rows and labels are drawn in
different orders.
Evidence: The rows that the model received in training, each with all labels that it was trained with.
Fix (manual): Compare rows as they are loaded with what the model receives: the vocabulary, the truncation, the cast, the scale.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, NamedRows, Proof, Severity, rule
from trainwright.core.sample import TORN
from trainwright.rehearsal.record import Output, Record
from trainwright.review.rows import made_outputs, mixes_rows

# Over a fifth of what was drawn, and no model could be right at more than this: set on 236 scripts.
TORN_SHARE, CEILING = 0.2, 0.85
FEWEST_DRAWN, FEWEST_ROWS = 100, 8
# Rows of so few numbers are equal by themselves, and their labels may be a matter of chance.
FEWEST_INPUTS = 6


@rule("TW1005", Severity.WARNING)
def torn_labels(record: Record) -> Iterator[Finding]:
    """Rows that the model cannot tell apart, though their labels differ."""
    if mixes_rows(record):
        return
    made = made_outputs(record)
    for output, of_rows in record.answers_of.items():
        total = sum(sum(labels.values()) for labels in of_rows.values())
        most = sum(max(labels.values()) for labels in of_rows.values())
        torn = sum(sum(labels.values()) for labels in of_rows.values() if len(labels) > 1)
        if output in made or total < FEWEST_DRAWN or len(of_rows) < FEWEST_ROWS or _are_small(record, output):
            continue
        if torn > TORN_SHARE * total and most < CEILING * total:
            yield Finding(
                message=f"{torn / total:.0%} of {total:,} drawn rows are equal to others with another label, as the model "
                f"receives them: no model can be right at more than {most / total:.2f}",
                measured={"torn": torn, "drawn": total, "distinct": len(of_rows), "ceiling": most / total},
                where=record.where,
                proof=Proof(f"{len(of_rows):,} distinct rows, each with all labels that it was trained with"),
                fix=Fix(
                    does="find what makes different rows equal (vocabulary, truncation, cast, scale), or pairs a row with "
                    "another label each time (an order of the labels' own)"
                ),
                rows=NamedRows(why=TORN, kept_as=TORN),
            )
            return


def _are_small(record: Record, output: Output) -> bool:
    rows = record.trained_rows.get(output)
    return rows is not None and rows[0].shape[1] < FEWEST_INPUTS
