"""Single rows of a sheet, with what was answered, and which classes are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainwright.core.sample import WORST, ConfusedRow, Sample
from trainwright.core.sheet import HELD_OUT, TRAINING
from trainwright.rehearsal.record import Kind, Output, Record, Sampled, Source
from trainwright.review._rows import Rows, evaluated_rows

# Rows of one set and output that are shown, and sets.
MOST_SAMPLES, MOST_SETS = 8, 4
# Classes of a table of confusions.
MOST_CLASSES = 12
# Numbers of a row that are told one by one.
MOST_NUMBERS = 6


def samples(record: Record) -> tuple[Sample, ...]:
    """The rows of each set; held-out rows first."""
    groups: dict[tuple[Output, bool, int, int], list[Sampled]] = {}
    for one in record.samples:
        groups.setdefault((one.output, one.trains, one.data, one.model), []).append(one)
    evaluated = evaluated_rows(record, scored=False)
    surest: dict[Any, int] = {}
    for (output, trains, data, model), of_set in groups.items():
        shape = output.kind, output.width, trains, data, model
        surest[shape] = min(surest.get(shape, len(Source)), list(Source).index(of_set[0].source))
    groups = {
        of: of_set
        for of, of_set in groups.items()
        if list(Source).index(of_set[0].source) == surest[(of[0].kind, of[0].width, *of[1:])]
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
        # Worst last: what is as usual is read first.
        ordered = sorted(of_set, key=lambda one: (WORST in one.why, -(one.loss or 0.0)))[:MOST_SAMPLES]
        found.append([_sample(record, one, of, rows_of) for one in ordered])
    found.sort(key=lambda of_set: of_set[0].rows_of != HELD_OUT)
    return tuple(sample for of_set in found[:MOST_SETS] for sample in of_set)


def _sample(record: Record, one: Sampled, of: str, rows_of: str) -> Sample:
    label, answer, right = _told(one, named_classes(record, one.output))
    yes = one.values is not None and one.output.kind == Kind.BINARY and one.output.width == 1
    probability = one.certainty
    if yes and one.values is not None:
        probability = float(max(one.values[0], 1 - one.values[0]))
    return Sample(
        rows_of=rows_of,
        output=of,
        why=one.why,
        row=one.number,
        update=one.update,
        inputs=one.parts,
        label=label,
        answer=answer,
        probability=probability,
        right=right,
        loss=one.loss,
        target=one.target,
    )


def _told(one: Sampled, names: dict[int, str]) -> tuple[str, str, bool | None]:
    """Label, answer, and whether the answer is right."""
    if one.output.kind == Kind.CLASSES and len(one.labels) > 1:
        told = "" if one.right is None else f"{one.right[0]:,} of {one.right[1]:,} labels right"
        return "", told, None
    if one.output.kind == Kind.CLASSES:
        label = int(one.labels[0])
        guess = one.guess
        told = "" if guess is None else names.get(guess, str(guess))
        return names.get(label, str(label)), told, None if guess is None else guess == label
    if one.output.kind == Kind.BINARY:
        labels, answers = one.labels > 0.5, None if one.values is None else one.values > 0.5
        if answers is None or labels.shape != answers.shape:
            return _yes(labels, names), "", None
        return _yes(labels, names), _yes(answers, names), bool((labels == answers).all())
    return _numbers(one.labels), "" if one.values is None else _numbers(one.values), None


def _yes(answers: Any, names: dict[int, str]) -> str:
    if len(answers) == 1:
        return names.get(int(answers[0]), "yes" if answers[0] else "no")
    chosen = [names.get(i, str(i + 1)) for i in np.flatnonzero(answers).tolist()]
    return (
        ", ".join(chosen[:MOST_NUMBERS])
        + (f" and {len(chosen) - MOST_NUMBERS:,} more" if len(chosen) > MOST_NUMBERS else "")
        or "none"
    )


def _numbers(values: Any) -> str:
    more = f" and {len(values) - MOST_NUMBERS:,} more" if len(values) > MOST_NUMBERS else ""
    return ", ".join(f"{float(value):.4g}" for value in values[:MOST_NUMBERS]) + more


def named_classes(record: Record, output: Output) -> dict[int, str]:
    """The classes that have a name, beside their number."""
    names = record.class_names.get(output, ())
    if output.kind == Kind.BINARY and output.width > 1:
        return dict(enumerate(names))
    return {number: f"{number} ({name})" for number, name in enumerate(names)}


def confused_rows(record: Record) -> tuple[ConfusedRow, ...]:
    """Labels against answers in the last evaluation of the first output that has few classes."""
    for rows in sorted(evaluated_rows(record, scored=False), key=lambda one: not one.is_held_out):
        found = _confused(record, rows)
        if found:
            return found
    return ()


def _confused(record: Record, rows: Rows) -> tuple[ConfusedRow, ...]:
    labels: Any
    guesses: Any
    if rows.output.kind == Kind.CLASSES and rows.guesses is not None:
        labels, guesses = rows.labels, rows.guesses
        names = {}
    elif rows.output.kind == Kind.BINARY and rows.output.width == 1 and rows.values is not None:
        labels, guesses = (one.reshape(-1) > 0.5 for one in (rows.labels, rows.values))
        names = {0: "no", 1: "yes"}
    else:
        return ()
    known = sorted({*np.unique(labels).tolist(), *np.unique(guesses).tolist()})
    if not 2 <= len(known) <= MOST_CLASSES:
        return ()
    names = {**names, **named_classes(record, rows.output)}
    told = [names.get(int(one), str(int(one))) for one in known]
    return tuple(
        ConfusedRow(
            output=str(rows.output),
            label=told[i],
            answers=tuple(told),
            counts=tuple(int(np.sum((labels == one) & (guesses == other))) for other in known),
        )
        for i, one in enumerate(known)
    )
