"""Asks a record all questions, and leaves out what follows from what was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, cast

from trainwright.core import Finding, Rule, Severity
from trainwright.registry import load_questions
from trainwright.rehearsal.record import Record
from trainwright.review.consequences import causes_of


class Review(NamedTuple):
    """What the questions found, and our own errors in them."""

    findings: tuple[Finding, ...]
    own_errors: tuple[str, ...]


def review(record: Record) -> Review:
    """Ask a record all questions; an earlier and more specific one speaks for what follows from its fault."""
    found: list[Finding] = []
    errors: list[str] = []
    for question in sorted(load_questions(), key=lambda one: one.order):
        try:
            found += [_named(question, one, record) for one in ask(question, record)]
        except Exception as error:  # a question's own: reported, and the others are asked
            errors.append(f"{question.name}: {type(error).__name__}: {error}")
    return Review(tuple(_chosen(found)), tuple(errors))


def ask(question: Rule, record: Record) -> list[Finding]:
    """What a question finds in a record."""
    return list(cast("Iterable[Finding]", question.function(record)))


def _named(question: Rule, finding: Finding, record: Record) -> Finding:
    # One line trains all where each is made by a call of the same function; rules mostly find what is so in the first.
    is_of_one_line = len({one.where for one in record.trainings}) <= 1 == finding.measured.get("training", 1)
    severity = question.severity_of(finding)
    return replace(finding, code=question.code, name=question.name, severity=severity, is_of_one_line=is_of_one_line)


def _chosen(found: list[Finding]) -> list[Finding]:
    """Without consequences; errors and warnings before notes, each in the order of the questions."""
    spoken: set[str] = set()
    kept: list[Finding] = []
    for finding in found:
        if spoken & causes_of(finding):
            continue
        kept.append(finding)
        if finding.severity != Severity.NOTE:
            spoken.add(finding.name)
    return sorted(kept, key=lambda one: one.severity == Severity.NOTE)
