"""What the rules find in the facts that the looks have measured, and the stages of a report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from trainwright.core import WALKED, Facts, Finding, Severity, Stage, StageRun, Status
from trainwright.core.report import WARNED, Report
from trainwright.label_profile import profile_of
from trainwright.look.judging import judge_facts
from trainwright.look.looked import Looked
from trainwright.rehearsal.record import Record
from trainwright.stages import LossFacts, OverfitFacts, SetupFacts
from trainwright.stages.describe import describe

# Why an evaluation was not looked at.
UNSEEN_EVALUATION = "no evaluation was seen in or after the loop"
# Why a stage has no facts of a training that was looked at.
IN_RUN = "the run itself shows it"


def judge_looks(looks: Iterable[Looked]) -> tuple[list[Finding], list[str]]:
    """The first causes in some trainings, with the notes before them; and what failed in rules of ours."""
    found: list[Finding] = []
    failed: list[str] = []
    for look in looks:
        failed += judge_facts(look.facts, look.answer, found, is_end=look.is_end)
    return found, failed


def with_training(report: Report, looks: Sequence[Looked], record: Record) -> Report:
    """The report, with the first training that was looked at: its stages, with what was found there or measured."""
    first = next((look for look in looks if look.training and not look.is_end), next(iter(looks), None))
    facts = first.facts if first is not None else {}
    measured = {kind.stage: fact for kind, fact in facts.items()}
    mended = {name for finding in report.findings for name in finding.after_repair}
    mended |= {finding.name for finding in report.findings if finding.fix is not None and finding.fix.tried}
    return replace(
        report,
        framework=report.framework or getattr(facts.get(SetupFacts), "framework", None),
        begins=report.begins or next((t.where for t in record.trainings), None),
        profile=profile_of(facts),
        stages=tuple(_stage_run(stage, report.findings, mended, measured.get(stage)) for stage in WALKED),
    )


def _stage_run(stage: Stage, findings: Sequence[Finding], mended: Collection[str], facts: Facts | None) -> StageRun:
    here = [f for f in findings if f.stage == stage and f.severity != Severity.NOTE]
    names = ", ".join(dict.fromkeys(f.name for f in here))
    if any(f.severity == Severity.ERROR and f.name not in mended for f in here):
        return StageRun(stage=stage, status=Status.FAILED, why=names)
    if any(f.name in mended for f in here):
        return StageRun(stage=stage, status=Status.REPAIRED, why=names)
    if names or facts is None:
        return StageRun(stage=stage, status=Status.PASSED, why=f"{WARNED}{names}") if names else _unseen(stage)
    is_far = isinstance(facts, LossFacts) and facts.is_far_above_chance
    is_shown = not isinstance(facts, OverfitFacts) or facts.by_heart
    status = Status.NOTED if is_far else Status.PASSED if is_shown else Status.UNSHOWN
    return StageRun(stage=stage, status=status, why=describe(facts))


def _unseen(stage: Stage) -> StageRun:
    return StageRun(stage=stage, status=Status.SKIPPED, why=UNSEEN_EVALUATION if stage == Stage.EVALUATION else IN_RUN)
