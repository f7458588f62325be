"""TW1013 held-out-at-constant: the whole run leaves the model's answers no better than a constant one.

Why it matters: The model has learned nothing that its labels tell; no error says so.
Evidence: The answers and labels of the last evaluation (of training, if no evaluation was seen), beside the constant answer of
the training labels, by each measure that the labels allow. A simple learner's score on the same rows says whether they can
be learned.
Fix (manual): What can explain it is named, if it was measured: another term that outweighs the loss of the labels, one class
that most labels are, inputs that tell nothing. Else find what keeps inputs, labels and weights apart: an inverted mask, wrong
rows, a detached part, wrong weights.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Kind, Record, Source
from trainwright.review._advice import advice
from trainwright.review._learner import better_learner
from trainwright.review._one_batch import is_one_chosen
from trainwright.review._rows import Rows, evaluated_rows, had_its_chance, held_out_rows, seen, trained_rows, updates_of

# Rows, held out and of training: nothing was wrong on 139 sound scripts.
FEWEST_HELD_OUT, FEWEST_TRAINED = 30, 100
# Standard errors below a constant answer.
BELOW = -4.0
# Nothing can be asked of fewer updates.
FEWEST_UPDATES = 10


@rule("TW1013", Severity.WARNING)
def held_out_at_constant(record: Record) -> Iterator[Finding]:
    """Rows on which no measure sees a gain."""
    rows = rows_at_constant(record)
    if rows is None:
        return
    learner = better_learner(record, rows)
    yield Finding(
        message=f"after {seen(record)} {rows.told}: no measure sees a gain"
        + ("" if rows.is_held_out else "; no held-out labels were seen beside answers")
        + (f"; {learner.told}" if learner is not None else _numbered(record, rows)),
        measured={
            "rows": len(rows.labels),
            "score": rows.best.value,
            "constant": rows.best.constant,
            "standard_errors": round(rows.best.errors, 1),
            **({"simple_learner": learner.value} if learner is not None else {}),
        },
        where=rows.where,
        proof=Proof(
            f"the model's answers for {rows.named} and their labels: "
            + ", ".join(f"{one.name} {one.value:.3g} against {one.constant:.3g}" for one in rows.scores)
        ),
        fix=Fix(does=advice(record, rows, is_learnable=learner is not None)),
    )


def _numbered(record: Record, rows: Rows) -> str:
    """What is far below a constant answer, though training rows are right, was learned under other numbers."""
    score = rows.score("accuracy")
    if not rows.is_held_out or score is None or score.errors > BELOW:
        return ""
    trained = next((one for one in trained_rows(record) if one.output == rows.output and one.learned), None)
    return f"; {trained.told}: are the classes of both sets numbered alike?" if trained is not None else ""


def rows_at_constant(record: Record) -> Rows | None:
    """The rows on which a run that had its chance is no better than a constant answer; None: there are none such."""
    if not had_its_chance(record) or updates_of(record) < FEWEST_UPDATES or is_one_chosen(record):
        return None
    last = record.trainings[-1] if record.trainings else None
    held = held_out_rows(record)
    if held:
        if any(one.learned for one in held):
            return None
        flat = [one for one in held if one.at_constant and one.trained is not None and one.source != Source.DIFFERENCE]
        return next((one for one in flat if len(one.labels) >= FEWEST_HELD_OUT), None)
    if evaluated_rows(record, last):
        return None
    trained = [one for one in trained_rows(record) if one.output.kind == Kind.CLASSES]
    if any(one.learned for one in trained):
        return None
    return next((one for one in trained if one.at_constant and len(one.labels) >= FEWEST_TRAINED), None)
