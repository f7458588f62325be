"""Asks a record all questions, and leaves out what follows from what was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, cast

from trainwright.core import Finding, Rule, Severity
from trainwright.registry import load_questions
from trainwright.rehearsal.record import Record

# Findings that are shown of one run; more are rarely read, and rarely different faults.
MOST_FINDINGS = 5
# What is said of the result follows from each fault in the run itself; of these, the first speaks.
RESULTS = ("held-out-at-constant", "unlearned-part", "simple-learner-better")
# A run that diverged, or whose weights stand still, explains all of these as well.
FOLLOWS = {
    "run-diverged": {"weights-stand-still", "other-weights-evaluated", "best-not-kept", "numbers-disagree"},
    "weights-stand-still": {"other-weights-evaluated", "best-not-kept", "numbers-disagree", "lost-columns"},
    "other-weights-evaluated": {"best-not-kept", "numbers-disagree"},
    "wrong-mode": {"numbers-disagree"},
    "torn-labels": {"numbers-disagree"},
    "partial-data": {"untrained-class", "numbers-disagree"},
    "held-out-at-constant": {"numbers-disagree"},
}
# These say nothing of why a result is poor.
APART = {"script-stopped", "fold-begins-trained", "rows-measured-twice", "target-among-inputs", "numbers-disagree"}


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
            found += [_named(question, one) for one in ask(question, record)]
        except Exception as error:  # a question's own: reported, and the others are asked
            errors.append(f"{question.name}: {type(error).__name__}: {error}")
    return Review(tuple(_chosen(found)), tuple(errors))


def ask(question: Rule, record: Record) -> list[Finding]:
    """What a question finds in a record."""
    return list(cast("Iterable[Finding]", question.function(record)))


def _named(question: Rule, finding: Finding) -> Finding:
    return replace(finding, code=question.code, name=question.name, severity=question.severity_of(finding))


def _chosen(found: list[Finding]) -> list[Finding]:
    """Without consequences; errors and warnings before notes, each in the order of the questions."""
    spoken: set[str] = set()
    kept: list[Finding] = []
    for finding in found:
        followed = {name for cause in spoken for name in FOLLOWS.get(cause, ())}
        explained = finding.name in RESULTS and bool(spoken - APART)
        if finding.name in followed or explained:
            continue
        kept.append(finding)
        if finding.severity != Severity.NOTE:
            spoken.add(finding.name)
    return sorted(kept, key=lambda one: one.severity == Severity.NOTE)[:MOST_FINDINGS]
