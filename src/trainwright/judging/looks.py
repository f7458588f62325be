"""What the rules find in the facts that the looks have measured, and a report's stages and profile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from trainwright.core import RULE_STAGES, Facts, Finding, ProfilePoint, Report, Severity, Stage, StageRun, Status
from trainwright.core.report import WARNED
from trainwright.look.asking import judge_facts
from trainwright.look.results import LookResult
from trainwright.rehearsal.record import Record
from trainwright.stages import DatasetFacts, ForwardFacts, LearningFacts, LossFacts, OverfitFacts, SetupFacts, Station
from trainwright.stages.describe import describe

# Why an evaluation was not looked at.
UNSEEN_EVALUATION = "no evaluation was seen in or after the loop"
# Why a stage has no facts of a training that was looked at.
IN_RUN, NOT_REACHED = "the run itself shows it", "the run did not reach it"
# A longer forward pass is shown where something changes, and else in even steps.
MOST_SHOWN = 14
CHANGE = 0.1


def judge_looks(looks: Iterable[LookResult], before: Sequence[Finding] = ()) -> tuple[list[Finding], list[str]]:
    """The first causes in some trainings, with the notes before them, behind what was found before; and what failed in rules of ours."""
    found = list(before)
    failed: list[str] = []
    for look in looks:
        failed += judge_facts(look.facts, look.answer, found, is_end=look.is_end)
    return found, failed


def with_training(report: Report, looks: Sequence[LookResult], record: Record) -> Report:
    """The report, with the first training that was looked at: its stages, with what was found there or measured."""
    own = [look for look in looks if not getattr(look.facts.get(ForwardFacts), "has_last_weights", False)]
    first = next((look for look in own if look.training and not look.is_end), next(iter(own), None))
    facts = first.facts if first is not None else {}
    measured = {kind.stage: fact for kind, fact in facts.items() if describe(fact)}
    unseen = IN_RUN if record.updates or record.losses else NOT_REACHED
    mended = {name for finding in report.findings for name in finding.after_repair}
    mended |= {finding.name for finding in report.findings if finding.fix is not None and finding.fix.tried}
    return replace(
        report,
        framework=report.framework or getattr(facts.get(SetupFacts), "framework", None),
        begins=report.begins or next((t.where for t in record.trainings), None),
        profile=_profile_of(facts),
        stages=tuple(_stage_run(stage, report.findings, mended, measured.get(stage), unseen) for stage in RULE_STAGES),
    )


def _stage_run(
    stage: Stage, findings: Sequence[Finding], mended: Collection[str], facts: Facts | None, unseen: str
) -> StageRun:
    here = [f for f in findings if f.stage == stage and f.severity != Severity.NOTE]
    names = ", ".join(dict.fromkeys(f.name for f in here))
    if any(f.severity == Severity.ERROR and f.name not in mended for f in here):
        return StageRun(stage=stage, status=Status.FAILED, why=names)
    if any(f.name in mended for f in here):
        return StageRun(stage=stage, status=Status.REPAIRED, why=names)
    if isinstance(facts, ForwardFacts) and facts.failure is not None and unseen == NOT_REACHED:
        return StageRun(stage=stage, status=Status.FAILED, why=facts.failure.type)
    if names or facts is None:
        if names:
            return StageRun(stage=stage, status=Status.PASSED, why=f"{WARNED}{names}")
        unseen = UNSEEN_EVALUATION if stage == Stage.EVALUATION else unseen
        return StageRun(stage=stage, status=Status.SKIPPED, why=unseen)
    is_far = isinstance(facts, LossFacts) and facts.is_far_above_chance
    is_shown = not isinstance(facts, OverfitFacts) or facts.by_heart
    status = Status.NOTED if is_far else Status.PASSED if is_shown else Status.UNSHOWN
    return StageRun(stage=stage, status=status, why=describe(facts))


def _profile_of(facts: Mapping[type[Facts], Facts]) -> tuple[ProfilePoint, ...]:
    """The points of the profile; empty if it was not measured."""
    learning, dataset = facts.get(LearningFacts), facts.get(DatasetFacts)
    found = learning.information if isinstance(learning, LearningFacts) else None
    if found is None:
        return ()
    points = tuple(_point(one) for one in _chosen((found.given, *found.stations)))
    raw = dataset.alignment if isinstance(dataset, DatasetFacts) else None
    if raw is None or raw.accuracy is None or raw.permuted_accuracy is None:
        return points
    right, permuted = raw.accuracy, raw.permuted_accuracy
    share = max(0.0, (right - permuted) / max(1 - permuted, 1e-9))
    return (ProfilePoint(name="rows of the data set", share=share, accuracy=right, permuted=permuted), *points)


def _point(station: Station) -> ProfilePoint:
    named = f"{station.name} ({station.kind})" if station.kind and station.kind != station.name else station.name
    return ProfilePoint(
        name=named, share=station.share, accuracy=station.accuracy, permuted=station.permuted, where=station.where
    )


def _chosen(stations: Sequence[Station]) -> list[Station]:
    """The first and the last, those at which the share changes, and others evenly between them."""
    last = len(stations) - 1
    even = {round(i * last / (MOST_SHOWN // 2)) for i in range(MOST_SHOWN // 2 + 1)}
    changes = sorted(range(1, last + 1), key=lambda i: -abs(stations[i].share - stations[i - 1].share))
    changes = [i for i in changes if abs(stations[i].share - stations[i - 1].share) > CHANGE][: MOST_SHOWN // 4]
    wanted = {*even, *changes, *(i - 1 for i in changes)} if last >= MOST_SHOWN else set(range(last + 1))
    return [s for i, s in enumerate(stations) if i in wanted]
