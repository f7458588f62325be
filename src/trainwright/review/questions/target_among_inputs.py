"""TW1019 target-among-inputs: a single input tells the target.

Why it matters: The held-out score is excellent, and where the model is used this input will not be there: the target itself,
another name or scale of it, something that is known only afterwards.
Evidence: Each column of the rows that the model was trained on, beside their labels.
Fix (manual): Take the column out of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Floats, LabelKind, Output, Record
from trainwright.review.rows import evaluated_rows

FEWEST_ROWS, FEWEST_COLUMNS, MOST_COLUMNS = 100, 3, 400
# A column of a class's number has as many values or a few more; a measured one has more.
MOST_VALUES = 60
# Of outputs, beyond which the answer is a reconstruction.
MOST_OUTPUTS = 4
# The target but for its scale, in single precision; a slow series is as near to its last value as 1e-4.
EQUAL = 1e-6
# Where the model does not use the column, it does no harm.
TOO_GOOD, TOO_GOOD_R2 = 0.97, 0.95


@rule("TW1019", Severity.WARNING)
def target_among_inputs(record: Record) -> Iterator[Finding]:
    """A column of the inputs from which the label of each row can be read."""
    for output, (inputs, labels, _) in record.trained_rows.items():
        wide = inputs.shape[1]
        if len(inputs) < FEWEST_ROWS or not FEWEST_COLUMNS <= wide <= MOST_COLUMNS or not _is_too_good(record, output):
            continue
        if bool((inputs == np.round(inputs)).all()):
            continue  # tokens and categories: a word may well tell the label
        column = _column(output, inputs.astype(np.float64), labels)
        if column is not None:
            what = "the target but for its scale" if output.kind == LabelKind.NUMBERS else "enough to tell the label"
            yield Finding(
                message=f"input {column + 1} of {wide} is {what}, in all {len(inputs):,} training rows that were compared",
                measured={"input": column + 1, "inputs": wide, "rows": len(inputs)},
                where=record.where,
                proof=Proof("the inputs as the model received them, and the labels of the same rows"),
                fix=Fix(does=f"take input {column + 1} out of what the model receives, if it is not known beforehand"),
            )
            return


def _is_too_good(record: Record, output: Output) -> bool:
    for rows in evaluated_rows(record):
        score = rows.score("R2" if output.kind == LabelKind.NUMBERS else "accuracy")
        if rows.output == output and score is not None and rows.learned:
            if score.value >= (TOO_GOOD_R2 if output.kind == LabelKind.NUMBERS else TOO_GOOD):
                return True
    return False


def _column(output: Output, inputs: Floats, labels: NDArray[Any]) -> int | None:
    wide = labels.reshape(len(labels), -1).astype(np.float64)
    if wide.shape[1] > MOST_OUTPUTS or np.ptp(wide[:, 0]) == 0:
        return None
    for number, column in enumerate(inputs.T):
        if np.ptp(column) == 0:
            continue
        if output.kind == LabelKind.NUMBERS:
            if 1 - abs(float(np.corrcoef(column, wide[:, 0])[0, 1])) < EQUAL:
                return number
        elif wide.shape[1] == 1 and _tells(column, wide[:, 0]):
            return number
    return None


def _tells(column: Floats, labels: Floats) -> bool:
    values, inverse = np.unique(np.round(column, 6), return_inverse=True)
    classes = np.unique(labels)
    if not len(classes) <= len(values) <= MOST_VALUES:
        return False
    pairs = np.unique(np.stack([inverse.reshape(-1).astype(np.float64), labels]), axis=1)
    return bool(pairs.shape[1] == len(values))
