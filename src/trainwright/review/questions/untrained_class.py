"""TW1012 untrained-class: a class that is evaluated was never trained on.

Why it matters: Its rows are always wrong: a split by class, a mapping of names to numbers made anew for each set, a filter.
Evidence: The labels of all training updates, and those of the last evaluation.
Fix (manual): Number the classes once for all sets, and split so that each set has all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainwright.core import Finding, Fix, NamedRows, Proof, Severity, rule
from trainwright.rehearsal.record import LabelKind, Record
from trainwright.review.rows import evaluated_rows, had_its_chance

# More are a vocabulary, in which rare tokens are normal.
MOST_CLASSES = 60
FEWEST_ROWS, LEAST_SHARE = 12, 0.02


@rule("TW1012", Severity.WARNING)
def untrained_class(record: Record) -> Iterator[Finding]:
    """A class among the evaluated labels that no update had."""
    if not had_its_chance(record):
        return
    for rows in evaluated_rows(record):
        if rows.output.kind != LabelKind.CLASSES or rows.output.width > MOST_CLASSES or not rows.trained:
            continue
        counts = Counter(rows.labels.tolist())
        least = max(FEWEST_ROWS, LEAST_SHARE * len(rows.labels))
        new = {one: n for one, n in counts.items() if n >= least and not rows.trained.classes.get(one)}
        if new:
            names = ", ".join(str(one) for one in sorted(new)[:5])
            which = f"class {names} is" if len(new) == 1 else f"classes {names} are"
            drawn = sum(rows.trained.classes.values())
            yield Finding(
                message=f"{which} the label of {sum(new.values()):,} of {len(rows.labels):,} evaluated rows, and of none of "
                f"{drawn:,} that were trained on",
                measured={"evaluated": sum(new.values()), "rows": len(rows.labels), "trained": 0, "drawn": drawn},
                where=rows.where,
                proof=Proof("the labels of all updates, and of the last evaluation"),
                fix=Fix(does="number the classes once for all sets, and give each set rows of all of them"),
                rows=NamedRows(why="of a class that no update had", classes=tuple(sorted(int(one) for one in new))),
            )
            return
