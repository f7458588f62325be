"""One chosen row as a report has it: its label, what was answered, and whether that is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.core import Finding
from trainwright.core.sample import OF_CLASS, TORN, WORST, Sample
from trainwright.rehearsal.record import SAMPLED_WIDTH, LabelKind, Output, Sampled

# Rows of one set and output that are shown, and sets.
MOST_SAMPLES, MOST_SETS = 8, 4
# Numbers, or names of classes, of a row that are told one by one.
MOST_NUMBERS = 6
# Up to rounding.
MOST_CERTAIN = 1 + 1e-4


def order_samples(rows: Iterable[Sampled], findings: Iterable[Finding] = ()) -> list[Sampled]:
    """The rows of one set that are shown: those that a finding speaks of, what is as usual, and the worst last."""
    named = [finding for finding in findings if finding.rows is not None]
    shown = [replace(one, why=why) for one in rows if (why := _why(one, named))]
    spoken = {finding.name for finding in named}
    return sorted(
        shown, key=lambda one: (one.why[0].split(":")[0] not in spoken, WORST in one.why, -(one.loss or 0.0))
    )[:MOST_SAMPLES]


def _why(one: Sampled, findings: list[Finding]) -> tuple[str, ...]:
    """Why a row is shown; empty: no finding speaks of what it was kept for."""
    is_class = f"{OF_CLASS} "
    usual = [why for why in one.why if why != TORN and not why.startswith(is_class)]
    spoken = []
    for finding in findings:
        rows = finding.rows
        assert rows is not None
        classes = {f"{is_class}{label}" for label in rows.classes}
        if rows.kept_as in one.why or not classes.isdisjoint(one.why):
            spoken.append(f"{finding.name}: {rows.why}")
    return (*spoken, *usual)


def tell_sample(one: Sampled, names: tuple[str, ...], *, output: str, rows_of: str) -> Sample:
    """The row with label and answer in words.

    Args:
        names: of the output's classes; empty: they have none.
        output: which output it is of; empty: there is one only.
        rows_of: `held-out` or `training`.
    """
    label, answer, right = _label_and_answer(one, number_classes(names, one.output))
    yes = one.values is not None and one.output.kind == LabelKind.BINARY and one.output.width == 1
    probability = one.certainty
    if yes and one.values is not None:
        probability = float(max(one.values[0], 1 - one.values[0]))
    if probability is not None and probability > MOST_CERTAIN:  # scores that the loss takes for probabilities
        probability = None
    return Sample(
        rows_of=rows_of,
        output=output,
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


def number_classes(names: tuple[str, ...], output: Output) -> dict[int, str]:
    """The classes that have a name, beside their number."""
    if output.kind == LabelKind.BINARY and output.width > 1:
        return dict(enumerate(names))
    return {number: f"{number} ({name})" for number, name in enumerate(names)}


def _label_and_answer(one: Sampled, names: dict[int, str]) -> tuple[str, str, bool | None]:
    if one.output.kind == LabelKind.CLASSES and len(one.labels) > 1:
        counted = "" if one.right is None else f"{one.right[0]:,} of {one.right[1]:,} labels right"
        return "", counted, None
    if not len(one.labels):
        return "", "", None
    if one.output.kind == LabelKind.CLASSES:
        label, guess = int(one.labels[0]), one.guess
        answer = "" if guess is None else names.get(guess, str(guess))
        return names.get(label, str(label)), answer, None if guess is None else guess == label
    if one.output.kind == LabelKind.BINARY:
        labels, answers = one.labels > 0.5, None if one.values is None else one.values > 0.5
        if answers is None or labels.shape != answers.shape:
            return _yes(labels, names), "", None
        return _yes(labels, names), _yes(answers, names, one.values), bool((labels == answers).all())
    return _numbers(one.labels), "" if one.values is None else _numbers(one.values), None


def _yes(answers: Any, names: dict[int, str], shares: Any = None) -> str:
    """The answers that are yes, of several with their probabilities."""
    if len(answers) == 1:
        return names.get(int(answers[0]), "yes" if answers[0] else "no")
    on = np.flatnonzero(answers).tolist()
    chosen = [names.get(i, str(i + 1)) + ("" if shares is None else f" {shares[i]:.0%}") for i in on]
    return _several(chosen, " + ") or "none"


def _numbers(values: Any) -> str:
    return _several([f"{float(value):.4g}" for value in values])


def _several(words: list[str], between: str = ", ") -> str:
    rest = "more" if len(words) == SAMPLED_WIDTH else f"{len(words) - MOST_NUMBERS:,} more"
    more = f" and {rest}" if len(words) > MOST_NUMBERS else ""
    return between.join(words[:MOST_NUMBERS]) + more
