"""Answers of yes or no whose labels are shares, as similarities are, become numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.rehearsal.record import Kind, Output, Record

# Smoothed labels have two values.
FEWEST_VALUES = 3


def number_soft_labels(record: Record) -> None:
    """Make numbers of the outputs whose labels lie between no and yes: of the evaluation's, if there are any."""
    for output in sorted({one.output for one in record.answers if one.output.kind == Kind.BINARY}):
        if _is_soft(record, output):
            _rename(record, output, _free(record, Output(Kind.NUMBERS, output.width, output.number)))


def _is_soft(record: Record, output: Output) -> bool:
    calls = [one for one in record.answers if one.output == output and len(one.labels)]
    labels = [one.labels.reshape(-1) for one in calls if not one.trains] or [one.labels.reshape(-1) for one in calls]
    values = np.unique(np.concatenate(labels)) if labels else np.zeros(0)
    return len(values) >= FEWEST_VALUES and bool(((values > 0) & (values < 1)).any())


def _free(record: Record, output: Output) -> Output:
    known = {one.output for one in record.answers}
    while output in known:
        output = replace(output, number=output.number + 1)
    return output


def _rename(record: Record, before: Output, now: Output) -> None:
    record.answers = [replace(one, output=now) if one.output == before else one for one in record.answers]
    for one in record.samples:
        if one.output == before:
            one.output = now
    tables: list[dict[Output, Any]] = [
        record.trained_labels,
        record.trained_rows,
        record.answers_of,
        record.class_names,
    ]
    for table in tables:
        if before in table:
            table[now] = table.pop(before)
