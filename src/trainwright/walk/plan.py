"""The plan of a walk: a generator that yields requests and is sent their results. It knows no framework."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from trainwright.adapters.base import Run
from trainwright.core.finding import Finding, Severity
from trainwright.core.repair import Repair, Seam
from trainwright.core.stage import Stage
from trainwright.stages.baseline import BaselineFacts
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.overfit import LEARNT_SHARE, measure_overfit
from trainwright.walk.trials import Train, experiment
from trainwright.walk.walk import Walk

OVERFIT_STEPS = 30
BASELINE_STEPS = 20
BASELINE_BATCHES = 4
# A loss this far below that of a constant prediction answers the baseline's question.
CLEARLY_BELOW = 0.8
EVALUATION_BATCHES = 2
FEWEST_STEPS = 8
# No script has that many faults; the limit ends a cycle of repairs that require each other.
MOST_REPAIRS = 24


@dataclass(frozen=True)
class Measure:
    """Measure a stage; the answer is its facts (for FORWARD: those of forward, loss and gradients)."""

    stage: Stage
    batches: int = EVALUATION_BATCHES


@dataclass(frozen=True)
class Apply:
    """Keep a repair in force; the answer is None, or the exception its change raised."""

    repair: Repair


Request = Measure | Train | Apply
Plan = Generator[Request, Any, None]

# Forward, loss and gradients are seen in one step, so they are measured together.
ORDER = (Stage.SETUP, Stage.DATASET, Stage.BATCH, Stage.FORWARD, Stage.OPTIMIZER, Stage.EVALUATION,
         Stage.OVERFIT, Stage.BASELINE)  # fmt: skip
_AFTER_THE_STEP = (Seam.OPTIMIZER, Seam.METRICS, Seam.EVALUATION)
_TOGETHER = {Stage.FORWARD: (Stage.FORWARD, Stage.LOSS, Stage.GRADIENTS)}


def plan(walk: Walk) -> Plan:
    """Walk all stages, repair faults where possible, and continue from the repaired stage."""
    at = 0
    while at < len(ORDER):
        stages = _TOGETHER.get(ORDER[at], (ORDER[at],))
        with walk.timing(stages):
            if walk.may_run(stages[0]):
                walk.forget(stages)
                yield from _measure(walk, ORDER[at])
            mended = yield from _judge_all(walk, stages)
        if mended is None:
            at += 1
        else:
            at = min(at, next(i for i, s in enumerate(ORDER) if mended in _TOGETHER.get(s, (s,))))


def _measure(walk: Walk, stage: Stage) -> Plan:
    if stage == Stage.OVERFIT:
        enough = LEARNT_SHARE / 2 * _inflation(walk)
        run = yield from _overfit(walk, enough)
        if _fell_short(run, enough):
            run = yield from _overfit(walk, LEARNT_SHARE / 2 * (run.constant or 0.0) / run.losses[0])
        walk.learn_step_seconds(run)
        walk.runs[walk.repaired, "", 1, 0] = run
        if _long_enough(walk, stage, run):
            walk.learn_run(stage, run, _overfit_facts(run))
    elif stage == Stage.BASELINE:
        steps = walk.affordable_steps(BASELINE_STEPS, FEWEST_STEPS)
        run = yield Train(
            steps=steps,
            batches=BASELINE_BATCHES,
            seed=0,
            seconds=walk.clock.left / 2,
            enough=CLEARLY_BELOW * _share_of_constant(walk),
        )
        if _long_enough(walk, stage, run):
            walk.learn_run(stage, run, _baseline_facts(run))
    else:
        walk.learn((yield Measure(stage)))


def _overfit(walk: Walk, enough: float) -> Generator[Request, Any, Run]:
    """Steps on one batch."""
    steps = walk.affordable_steps(OVERFIT_STEPS, FEWEST_STEPS)
    run: Run = yield Train(steps=steps, batches=1, seed=0, seconds=walk.clock.left / 3, enough=enough)
    return run


def _fell_short(run: Run, enough: float) -> bool:
    """Whether a run ended early as learned although, compared with a constant prediction on its rows, it was not."""
    ended = run.failure is None and len(run.losses) > 1 and run.losses[-1] <= enough * run.losses[0]
    return ended and run.constant is not None and not _overfit_facts(run).learnt


def _inflation(walk: Walk) -> float:
    """The loss of an uninformed model as a fraction of the first loss; 1 if it is unknown or not smaller."""
    loss = walk.facts.get(LossFacts)
    if not isinstance(loss, LossFacts) or not loss.value or loss.expected is None:
        return 1.0
    return min(1.0, max(0.0, loss.expected / loss.value)) if loss.value > 0 else 1.0


def _share_of_constant(walk: Walk) -> float:
    """The loss of always predicting the label frequencies, as a fraction of the first loss; 0 if unknown."""
    loss, dataset = walk.facts.get(LossFacts), walk.facts.get(DatasetFacts)
    if not isinstance(loss, LossFacts) or not isinstance(dataset, DatasetFacts):
        return 0.0
    labels = dataset.train.labels
    if labels is None or labels.entropy_nats is None or loss.expected is None or not loss.value:
        return 0.0
    return min(1.0, max(0.0, labels.entropy_nats / loss.value))


def _long_enough(walk: Walk, stage: Stage, run: Run) -> bool:
    """Whether a run is long enough to mean anything; a few steps cut off by the budget are not."""
    if run.skipped:
        walk.skip(stage, run.skipped)
        return False
    learnt = run.losses and run.losses[-1] <= LEARNT_SHARE * run.losses[0]
    if run.failure is not None or learnt or len(run.losses) >= FEWEST_STEPS:
        return True
    walk.skip(stage, f"only {len(run.losses)} steps fit into the budget of {walk.clock.budget:.0f} s")
    return False


def _overfit_facts(run: Run) -> Any:
    matched = [p == t for p, t in zip(run.predictions, run.labels)]
    return measure_overfit(
        run.losses,
        run.rows,
        accuracy=sum(matched) / len(matched) if matched else None,
        predicted_classes=len(set(run.predictions)) or None,
        batch_classes=len(set(run.labels)) or None,
        floor=run.floor,
        constant=run.constant,
        evaluated=run.evaluated,
    )


def _baseline_facts(run: Run) -> BaselineFacts:
    part = max(1, len(run.losses) // 5)
    return BaselineFacts(
        first=sum(run.losses[:part]) / part,
        last=sum(run.losses[-part:]) / part,
        constant=run.constant,
        evaluated=run.evaluated,
        floor=run.floor,
        steps=len(run.losses),
        rows=run.rows,
        losses=run.losses,
        predicted_classes=len(set(run.predictions)) or None,
        label_classes=len(set(run.labels)) or None,
    )


def _judge_all(walk: Walk, stages: tuple[Stage, ...]) -> Generator[Request, Any, Stage | None]:
    for stage in stages:
        finding = yield from _judge(walk, stage)
        if finding is not None and finding.repair is not None:
            own = finding.stage
            # A repair of the model or its calls invalidates what was measured of them, whatever the fault's stage.
            after = finding.repair.seam in _AFTER_THE_STEP and not walk.failed_before(own)
            return own if after else min(own, Stage.FORWARD)
    return None


def _judge(walk: Walk, stage: Stage) -> Generator[Request, Any, Finding | None]:
    """Run the stage's rules; return the first finding whose repair is now in force."""
    for rule in walk.rules_at(stage):
        if rule.residual and walk.unmended:
            continue
        if walk.explained(stage):
            break
        for finding in (yield from experiment(walk, rule)):
            if not walk.keep(finding):
                continue
            if finding.repair and finding.severity != Severity.NOTE and walk.repair_allowed(MOST_REPAIRS):
                error = yield Apply(finding.repair)
                if error is None:
                    walk.mended(finding)
                    return finding
                walk.repair_failed(finding, error)
    return None
