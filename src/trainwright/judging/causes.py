"""Joins what the rules found, what the whole run came to, and what is known of its error, into causes and remedies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainwright.core import Failure, Finding, Fix, Outcome, Proof, Severity, Stage
from trainwright.core.misspelt import MEND
from trainwright.frameworks.messages import best
from trainwright.review.consequences import EXPLAINED_BY, causes_of

# Findings of questions that are shown; more are rarely read, and rarely different faults.
MOST_FINDINGS = 5
# Shares of labels that can be right at best are the same if they differ by less.
SAME_CEILING = 0.1


def with_outcome_explained(findings: Sequence[Finding], *, is_of_copy: bool = False) -> tuple[Finding, ...]:
    """The findings without what follows from others; notes that explain the outcome are warnings, and it points to them.

    Args:
        is_of_copy: whether the outcome is that of a copy in which proven errors were mended: they explain nothing of it.
    """
    findings = [f for f in findings if not any(_explains(one, f) for one in findings)]
    cut = [f for f in findings if f.stage == Stage.REHEARSAL][MOST_FINDINGS:]
    findings = [f for f in findings if not any(f is one for one in cut)]
    outcome = next((f for f in findings if f.name in EXPLAINED_BY and f.severity != Severity.NOTE), None)
    if outcome is None:
        return tuple(findings)
    names = EXPLAINED_BY[outcome.name]
    found = [_raised(f, outcome) if f.name in names and f.severity == Severity.NOTE else f for f in findings]
    errors = [f for f in found if f.stage < Stage.EVALUATION and f.severity == Severity.ERROR]
    proven = [] if is_of_copy else errors
    causes = [f for f in found if f.severity != Severity.NOTE and (f.name in names or _is_tried(f) or f in proven)]
    if not causes:
        return tuple(found)
    first = min(causes, key=lambda one: one.stage)
    below = replace(outcome, fix=Fix(does=f"{first.code} {first.name} can explain it: mend that first"))
    return tuple(below if f is outcome else f for f in found)


def with_known_remedy(finding: Finding, failures: Sequence[Failure]) -> Finding:
    """The finding of a script that stopped, with what is known of its message as the remedy."""
    failure = next((one for one in failures if str(one) in finding.message), None)
    if finding.fix is None or finding.fix.does != MEND or failure is None:
        return finding
    match = best(failure.type, failure.message)
    if match is None or match.known.wraps:
        return finding
    return replace(finding, fix=Fix(does=match.known.paragraph.rstrip(".")))


def _explains(cause: Finding, finding: Finding) -> bool:
    """Whether a rule's finding explains a question's of the same training, and was not mended before that was found."""
    is_of_both = finding.is_of_one_line or None is not cause.where == finding.where
    is_milder = cause.severity == Severity.NOTE or finding.severity == Severity.ERROR != cause.severity
    is_cause = cause.name in causes_of(finding) and cause.name not in finding.after_repair
    is_of_run = cause.after_repair in ((), finding.after_repair)
    ceiling, left = finding.measured.get("ceiling"), cause.measured.get("best_accuracy")
    if isinstance(ceiling, float) and isinstance(left, float) and ceiling < left - SAME_CEILING:
        return False  # more rows are torn than the labels of the data explain
    is_before = cause.stage < finding.stage == Stage.REHEARSAL
    return is_before and is_of_both and is_of_run and is_cause and not is_milder


def _is_tried(finding: Finding) -> bool:
    """Whether a trial has shown that the training learns better without it."""
    return finding.stage < Stage.REHEARSAL and isinstance(finding.proof, Outcome)


def _raised(note: Finding, outcome: Finding) -> Finding:
    proof = f"{note.proof.fact}; " if isinstance(note.proof, Proof) else ""
    return replace(note, severity=Severity.WARNING, proof=Proof(f"{proof}the whole run: {outcome.message}"))
