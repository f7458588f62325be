"""What the rules find in the facts that the close look has measured in the run itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainwright.core import Finding, Severity, Shown, Verdict
from trainwright.core.report import Report
from trainwright.look.judging import judge_facts
from trainwright.options import Options
from trainwright.refuted import name_errors
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_rows import Looked


def with_looks(
    reports: Sequence[Report], options: Options, found: Sequence[Finding], failed: Sequence[str]
) -> list[Report]:
    """The walk's reports; the first one with what the rules find in the trainings that were not walked.

    Args:
        found: that.
        failed: errors in rules of ours.
    """
    first, *others = reports
    known = {(f.name, f.where) for report in reports for f in report.findings}
    new = [f for f in found if not options.ignores(f) and (f.name, f.where) not in known]
    errors = name_errors(new)
    verdict = Verdict(shown=Shown.BROKEN, why=errors) if errors and first.verdict is None else first.verdict
    internal = (*first.internal_errors, *failed)
    return [replace(first, findings=(*first.findings, *new), internal_errors=internal, verdict=verdict), *others]


def list_unwalked(reports: Sequence[Report], record: Record) -> list[Looked]:
    """The looks at trainings that no report is of: a walked one begins at its report's line, or closest behind it.

    The end of the run is looked at unless a report explains an exception, which then is the run's.
    """
    is_told = any(_explains(report) for report in reports)
    looks = [look for look in record.looks if not (look.is_end and is_told)]
    if not any(run.status.through for run in reports[0].stages):
        return looks
    walked = set()
    for begins in (report.begins for report in reports):
        near = [
            t.where
            for t in record.trainings
            if begins and t.where and t.where.file == begins.file and t.where.line >= begins.line
        ]
        walked.add(min(near, key=lambda place: place.line, default=None))
    walked |= {training.where for training in record.trainings[: len(reports)]} if None in walked else set()
    others = {training.number for training in record.trainings if training.where not in walked}
    return [look for look in looks if look.training in others or look.is_end]


def _explains(report: Report) -> bool:
    """Whether an error was found of a stage that raised, or of a script that ended before its training."""
    is_before = not any(run.status.through for run in report.stages)
    return any(f.severity == Severity.ERROR and (f.is_of_exception or is_before) for f in report.findings)


def judge_looks(looks: Iterable[Looked]) -> tuple[list[Finding], list[str]]:
    """The first causes in some trainings, with the notes before them; and what failed in rules of ours."""
    found: list[Finding] = []
    failed: list[str] = []
    for look in looks:
        failed += judge_facts(look.facts, look.answer, found, is_end=look.is_end)
    return found, failed
