"""The plan of a walk: a generator that yields requests and is sent their results. It knows no framework."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import Learn, Run, Train
from trainwright.core import Finding, Repair, Seam, Severity, Stage
from trainwright.stages import BaselineFacts, DatasetFacts, LossFacts
from trainwright.stages.overfit import LEARNT_SHARE, OverfitFacts
from trainwright.walk.judged import judged
from trainwright.walk.trials import experiment, learn
from trainwright.walk.walk import Walk

OVERFIT_STEPS = 30
BASELINE_STEPS = 20
# A loss that still falls gets so many times the steps, if that takes no more than this share of the time left.
LONGER, LONGER_SHARE = 4, 0.1
BASELINE_BATCHES = 4
# The share of the time left that steps on extreme rows may take, and the share where rows have yet to be read for it.
ROWS_SHARE, UNREAD_SHARE = 0.1, 0.5
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


@dataclass(frozen=True, kw_only=True)
class TryRows:
    """Take steps on the extreme rows of the sets; the answer is OddRowFacts."""

    dataset: DatasetFacts
    seconds: float


Request = Measure | Train | Apply | Learn | TryRows
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
    if stage >= Stage.OVERFIT and walk.updates == 0:
        walk.skip(stage, "no training was asked for")
    elif stage == Stage.OVERFIT:
        yield from _try_rows(walk)
        enough = LEARNT_SHARE / 2 * _inflation(walk)
        run = yield from _overfit(walk, enough)
        if _fell_short(run, enough):
            run = yield from _overfit(walk, LEARNT_SHARE / 2 * (run.constant or 0.0) / run.losses[0])
        walk.learn_step_seconds(run)
        walk.runs[walk.repaired, "", 1, 0] = run
        if _long_enough(walk, stage, run):
            facts = short_runs.overfit_facts(run, _class_names(walk, run))
            if facts.falling and not facts.by_heart and not facts.diverged and run.failure is None:
                facts = replace(facts, longer=(yield from _longer(walk, run)))
            walk.learn_run(stage, run, facts)
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
        if not walk.broken:
            walk.learn((yield from learn(walk)))
    else:
        walk.learn((yield Measure(stage)))


def _try_rows(walk: Walk) -> Plan:
    """Steps on the extreme rows, unless something else is known to be wrong or rows were already left out."""
    dataset = walk.facts.get(DatasetFacts)
    mended = any(f.stage == Stage.DATASET and id(f) in walk.fixed for f in walk.findings)
    if not isinstance(dataset, DatasetFacts) or walk.broken or mended:
        return
    unread = any(s.rows is None or s.read < s.rows for s in dataset.splits)
    share = UNREAD_SHARE if unread else ROWS_SHARE
    walk.learn((yield TryRows(dataset=dataset, seconds=share * walk.clock.left)))


def _overfit(walk: Walk, enough: float) -> Generator[Request, Any, Run]:
    """Steps on one batch."""
    steps = walk.affordable_steps(OVERFIT_STEPS, FEWEST_STEPS)
    run: Run = yield Train(steps=steps, batches=1, seed=0, seconds=walk.clock.left / 3, enough=enough)
    return run


def _longer(walk: Walk, run: Run) -> Generator[Request, Any, OverfitFacts | None]:
    """More steps on the batch, for a loss that is still falling; None if they would cost much, or were cut off."""
    seconds = LONGER_SHARE * walk.clock.left
    steps = LONGER * len(run.losses)
    if len(run.losses) < OVERFIT_STEPS or steps * run.seconds / len(run.losses) > seconds:
        return None
    longer: Run = yield Train(steps=steps, batches=1, seed=0, seconds=2 * seconds, enough=LEARNT_SHARE / 4)
    usable = longer.failure is None and len(longer.losses) > len(run.losses) and not longer.skipped
    return short_runs.overfit_facts(longer) if usable else None


def _fell_short(run: Run, enough: float) -> bool:
    """Whether a run ended early as learned although, compared with a constant prediction on its rows, it was not."""
    ended = run.failure is None and len(run.losses) > 1 and run.losses[-1] <= enough * run.losses[0]
    return ended and run.constant is not None and not short_runs.overfit_facts(run).learnt


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


def _class_names(walk: Walk, run: Run) -> tuple[str, ...]:
    """The names of a run's classes; empty unless the data set has named just these numbers."""
    dataset = walk.facts.get(DatasetFacts)
    labels = dataset.train.labels if isinstance(dataset, DatasetFacts) else None
    if labels is None or not all(c in labels.census and 0 <= c < len(labels.class_names) for c in run.labels):
        return ()
    return labels.class_names


def _baseline_facts(run: Run) -> BaselineFacts:
    part = max(1, len(run.losses) // 5)
    return BaselineFacts(
        first=sum(run.losses[:part]) / part,
        last=sum(run.losses[-part:]) / part,
        constant=run.constant,
        steps=len(run.losses),
        predicted_classes=len(set(run.predictions)) or None,
        label_classes=len(set(run.labels)) or None,
    )


def _judge_all(walk: Walk, stages: tuple[Stage, ...]) -> Generator[Request, Any, Stage | None]:
    """Judge what was measured by all rules, and only then repair it; returns the stage to walk from, if repaired."""
    found: list[Finding] = []
    all_asked = True
    for stage in stages:
        all_asked &= yield from _judge(walk, stage, found)
    for number, finding in enumerate(found):
        if not walk.keep(finding) or not _can_be_mended(walk, finding):
            continue
        assert finding.repair is not None
        error = yield Apply(finding.repair)
        if error is not None:
            walk.repair_failed(finding, error)
            continue
        walk.mended(finding)
        walk.waiting = [*walk.waiting, *found[number + 1 :]]
        # A repair of the model or its calls invalidates what was measured of them, whatever the fault's stage.
        after = finding.repair.seam in _AFTER_THE_STEP and not walk.failed_before(finding.stage)
        return finding.stage if after else min(finding.stage, Stage.FORWARD)
    return None if all_asked else (yield from _judge_all(walk, stages))


def _can_be_mended(walk: Walk, finding: Finding) -> bool:
    return finding.repair is not None and finding.severity != Severity.NOTE and walk.repair_allowed(MOST_REPAIRS)


def _judge(walk: Walk, stage: Stage, found: list[Finding]) -> Generator[Request, Any, bool]:
    """Add what the stage's rules find, each as it was first found; returns whether all of them were asked.

    Behind a finding that will be repaired, no experiment is made: on a broken pipeline it decides nothing. Those rules are
    asked again once the repair is in force.
    """
    all_asked = True
    for rule in walk.rules_at(stage):
        if rule.residual and (walk.unmended_with(found) if rule.general else walk.has_cause_with(found)):
            continue
        if walk.explained(stage, found):
            break
        broken = any(_can_be_mended(walk, f) for f in found)
        findings = yield from experiment(walk, rule, trials=not broken)
        if findings is None:
            all_asked = False
        else:
            found += judged(walk, rule, findings)
    return all_asked
