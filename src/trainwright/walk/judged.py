"""What a rule found, against what is already known of the pipeline: faults keep the facts they were first found by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trainwright.core import Finding, Rule, Severity, Stage
from trainwright.stages import EvaluationFacts
from trainwright.walk.aftermath import alike

if TYPE_CHECKING:
    from trainwright.walk.walk import Walk


def judged(walk: Walk, rule: Rule, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that are new, each as it was first found: before a repair of another fault, if it was seen then.

    What was seen before that repair and is no longer found was its consequence, and is forgotten.
    """
    if not findings:
        walk.aftermath.judged_clean(rule.code)
    _forget_consequences(walk, rule, findings)
    earlier = [w for w in walk.waiting if w.code == rule.code]
    walk.waiting = [w for w in walk.waiting if w.code != rule.code]
    news = []
    for finding in findings:
        first = next((w for w in earlier if alike(w, finding)), None)
        if first is not None:
            earlier.remove(first)
            finding = replace(first, repair=finding.repair)
        if walk.is_known(finding):
            continue
        if rule.raises and _has_raised(walk, finding.stage):
            finding = replace(finding, is_of_exception=True)
        if first is None:
            walk.aftermath.found(finding)
        news.append(finding)
    return news


def _has_raised(walk: Walk, stage: Stage) -> bool:
    """Whether what was measured of a stage has raised: the stage itself, or the metrics of an evaluation."""
    evaluation = walk.facts.get(EvaluationFacts) if stage == Stage.EVALUATION else None
    is_of_metrics = isinstance(evaluation, EvaluationFacts) and evaluation.metrics_failure is not None
    return stage in walk.failures or is_of_metrics


def _forget_consequences(walk: Walk, rule: Rule, findings: Sequence[Finding]) -> None:
    """Drop the faults of a rule that a repair of an earlier part of the pipeline has removed."""
    gone = [
        f
        for f in walk.findings
        if f.code == rule.code
        and f.severity != Severity.NOTE
        and id(f) not in walk.fixed
        and not any(alike(f, again) for again in findings)
    ]
    for consequence in gone:
        since = walk.aftermath.repaired_since(consequence)
        if any(
            (cause.stage, cause.code) < (consequence.stage, consequence.code) and walk.tried(cause) for cause in since
        ):
            walk.findings.remove(consequence)
