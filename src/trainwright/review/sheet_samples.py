"""Single rows of a sheet, with what was answered, and which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Finding
from trainwright.core.sample import ConfusedRow, GeneratedText, Sample
from trainwright.core.sheet import HELD_OUT, TRAINING
from trainwright.rehearsal.record import LabelKind, Output, PairSource, Record, Sampled
from trainwright.rehearsal.sample_words import MOST_SETS, number_classes, order_samples, tell_sample
from trainwright.review.rows import AnsweredRows, evaluated_rows, made_outputs
from trainwright.review.scores import are_probabilities

# Classes of a table of confusions.
MOST_CLASSES = 12


def samples(record: Record, findings: Sequence[Finding] = ()) -> tuple[Sample, ...]:
    """The rows of each set, and those that findings speak of; held-out rows first."""
    groups: dict[tuple[Output, bool, int, int], list[Sampled]] = {}
    made = made_outputs(record)
    for one in (one for one in record.samples if one.output not in made):
        groups.setdefault((one.output, one.trains, one.data, one.model), []).append(one)
    evaluated = evaluated_rows(record, scored=False)
    surest: dict[Any, int] = {}
    for (output, trains, data, model), of_set in groups.items():
        shape = output.kind, output.width, trains, data, model
        surest[shape] = min(surest.get(shape, len(PairSource)), list(PairSource).index(of_set[0].source))
    groups = {
        of: of_set
        for of, of_set in groups.items()
        if list(PairSource).index(of_set[0].source) == surest[(of[0].kind, of[0].width, *of[1:])]
    }
    several = len({output for output, _, _, _ in groups if output.width}) > 1
    found = []
    for (output, trains, data, model), of_set in groups.items():
        known = [rows for rows in evaluated if (rows.output, rows.calls[0].data, rows.model) == (output, data, model)]
        if not trains and not known:  # a pass of another model, or one that nobody scores
            continue
        held_out = not trains and any(rows.is_held_out for rows in known)
        of = str(output) if several and output.width else ""
        rows_of = HELD_OUT if held_out else TRAINING
        names = record.class_names.get(output, ())
        found.append([tell_sample(one, names, output=of, rows_of=rows_of) for one in order_samples(of_set, findings)])
    found = [of_set for of_set in found if of_set]
    found.sort(key=lambda of_set: of_set[0].rows_of != HELD_OUT)
    return tuple(sample for of_set in found[:MOST_SETS] for sample in of_set)


def tell_generated(record: Record) -> tuple[GeneratedText, ...]:
    """What a language model made of a few rows."""
    held_out = {
        (call.data, rows.model)
        for rows in evaluated_rows(record, scored=False)
        if rows.is_held_out
        for call in rows.calls
    }
    return tuple(
        GeneratedText(
            rows_of=HELD_OUT if not one.trains and (one.data, one.model) in held_out else TRAINING,
            row=one.number,
            update=one.update,
            prompt=one.prompt,
            text=one.text,
            expected=one.expected,
        )
        for one in record.generated
    )


def names_of(output: Output, known: Sequence[int], named: tuple[str, ...]) -> dict[int, str]:
    """What these classes are called: by their names, where the script has some."""
    usual = {0: "no", 1: "yes"} if output.kind == LabelKind.BINARY else {one: str(one) for one in known}
    return usual | number_classes(named, output)


def decide_classes(rows: AnsweredRows) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Labels and answers as classes; None: there are none."""
    output, values = rows.output, rows.values
    if output.kind == LabelKind.CLASSES and rows.guesses is not None:
        return rows.labels, rows.guesses
    if output.kind == LabelKind.BINARY and output.width == 1 and values is not None and are_probabilities(values):
        return (rows.labels.reshape(-1) > 0.5).astype(int), (values.reshape(-1) > 0.5).astype(int)
    return None


def confused_rows(record: Record) -> tuple[ConfusedRow, ...]:
    """Labels against answers in the last evaluation of the first output that has few classes."""
    for rows in sorted(evaluated_rows(record, scored=False), key=lambda one: not one.is_held_out):
        found = _confused(record, rows)
        if found:
            return found
    return ()


def _confused(record: Record, rows: AnsweredRows) -> tuple[ConfusedRow, ...]:
    found = decide_classes(rows)
    if found is None:
        return ()
    labels, guesses = found
    known = sorted({*np.unique(labels).tolist(), *np.unique(guesses).tolist()})
    if not 2 <= len(known) <= MOST_CLASSES:
        return ()
    names = names_of(rows.output, known, record.class_names.get(rows.output, ()))
    return tuple(
        ConfusedRow(
            output=str(rows.output),
            label=names[one],
            answers=tuple(names[other] for other in known),
            counts=tuple(int(np.sum((labels == one) & (guesses == other))) for other in known),
        )
        for one in known
    )
