"""What the rules find in the facts that the close look has measured in the run itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from trainwright.core import WALKED, Facts, Finding, Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.report import UNWALKED, WARNED, Report
from trainwright.look.judging import judge_facts
from trainwright.options import Options
from trainwright.refuted import name_errors
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_rows import Looked
from trainwright.stages import SetupFacts
from trainwright.stages.describe import describe
from trainwright.walk.stage_runs import UNSEEN_EVALUATION

# Why a stage has no facts of a training that was looked at.
IN_RUN = "the run itself shows it"


def with_looks(
    reports: Sequence[Report], options: Options, found: Sequence[Finding], failed: Sequence[str]
) -> list[Report]:
    """The walk's reports; the first one with what the rules find in the trainings that were not walked.

    Args:
        found: that.
        failed: errors in rules of ours.
    """
    first, *others = reports
    if UNWALKED in first.message:  # further runs say more of what was mended on the way to the training
        again = {(f.name, f.where) for f in found}
        first = replace(first, findings=tuple(f for f in first.findings if (f.name, f.where) not in again))
    known = {(f.name, f.where) for report in (first, *others) for f in report.findings}
    new = [f for f in found if not options.ignores(f) and (f.name, f.where) not in known]
    errors = name_errors(new)
    verdict = Verdict(shown=Shown.BROKEN, why=errors) if errors and first.verdict is None else first.verdict
    if UNWALKED in first.message and (errors := name_errors([*first.findings, *new])):
        verdict = Verdict(shown=Shown.BROKEN, why=errors)
    internal = (*first.internal_errors, *failed)
    return [replace(first, findings=(*first.findings, *new), internal_errors=internal, verdict=verdict), *others]


def list_unwalked(reports: Sequence[Report], record: Record) -> list[Looked]:
    """The looks at trainings that no report is of: a walked one begins at its report's line, or closest behind it.

    The end of the run is looked at unless a report explains an exception, which then is the run's.
    """
    is_told = any(_explains(report) and UNWALKED not in report.message for report in reports)
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


def with_training(report: Report, looks: Sequence[Looked], record: Record) -> Report:
    """The report of a walk that has reached no training, with the first one that was looked at: its stages, with what was found
    there or measured."""
    first = next((look for look in looks if look.training and not look.is_end), None)
    facts = first.facts if first is not None else {}
    measured = {kind.stage: fact for kind, fact in facts.items()}
    mended = {name for finding in report.findings for name in finding.after_repair}
    before, was_left, _ = report.message.partition(UNWALKED)
    if first is None and not was_left:
        return replace(report, message="" if record.updates else report.message)
    return replace(
        report,
        framework=report.framework or getattr(facts.get(SetupFacts), "framework", None),
        begins=report.begins or next((t.where for t in record.trainings), None),
        stages=tuple(_stage_run(stage, report.findings, mended, measured.get(stage)) for stage in WALKED),
        message=before.strip() if was_left else "",
    )


def _stage_run(stage: Stage, findings: Sequence[Finding], mended: Collection[str], facts: Facts | None) -> StageRun:
    here = [f for f in findings if f.stage == stage and f.severity != Severity.NOTE]
    names = ", ".join(dict.fromkeys(f.name for f in here))
    if any(f.severity == Severity.ERROR and f.name not in mended for f in here):
        return StageRun(stage=stage, status=Status.FAILED, why=names)
    if any(f.name in mended for f in here):
        return StageRun(stage=stage, status=Status.REPAIRED, why=names)
    if names or facts is not None:
        return StageRun(
            stage=stage, status=Status.PASSED, why=f"{WARNED}{names}" if names or facts is None else describe(facts)
        )
    return StageRun(stage=stage, status=Status.SKIPPED, why=UNSEEN_EVALUATION if stage == Stage.EVALUATION else IN_RUN)
