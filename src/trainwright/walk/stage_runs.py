"""What became of each stage of a walk, as the report says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from trainwright.core import Facts, Finding, Severity, Stage, StageRun, Status
from trainwright.core.report import WARNED
from trainwright.stages import CENSUS_LABELS, BaselineFacts, EvaluationFacts, LearningFacts, LossFacts, OddRowFacts
from trainwright.stages.overfit import DIVERGED_FACTOR, OverfitFacts
from trainwright.stages.setup import SetupFacts

if TYPE_CHECKING:
    from trainwright.walk.walk import Walk

# Why an evaluation was not walked.
UNSEEN_EVALUATION, NO_EVALUATION_SET = "no evaluation was seen in or after the loop", "there is no evaluation set"
# A loss that differs from its one loss call by more than this has further terms.
SAME_LOSS = 0.01


def stage_run(walk: Walk, stage: Stage, findings: Sequence[Finding]) -> StageRun:
    run = _stage_run(walk, stage, findings)
    return replace(run, why=run.why + _compared_rates(walk)) if stage == Stage.OPTIMIZER else run


def _compared_rates(walk: Walk) -> str:
    """The loss of one batch at each learning rate that was tried, after as many updates; empty if none was."""
    key = max(walk.rates, key=lambda one: len(walk.rates[one]), default=((), 0))
    tried, steps = sorted(walk.rates.get(key, {}).items()), key[1]
    told = ", ".join(f"{rate:.3g} → {loss:.4g}" for rate, loss in tried)
    return f"; loss of one batch after {steps} updates by learning rate: {told}" if len(tried) > 1 else ""


def _stage_run(walk: Walk, stage: Stage, findings: Sequence[Finding]) -> StageRun:
    seconds = walk.seconds.get(stage, 0.0)
    here = [f for f in findings if f.stage == stage and f.severity != Severity.NOTE]
    mended = {f.name for f in walk.findings if walk.tried(f)}
    unmended = [f for f in here if f.name not in mended and f.severity == Severity.ERROR]
    measured = [f for f in walk.facts.values() if f.stage == stage and not isinstance(f, OddRowFacts)]
    if stage in walk.failures or unmended:
        why = ", ".join(f.name for f in unmended) or str(walk.failures[stage])
        return StageRun(stage=stage, status=Status.FAILED, why=why, seconds=seconds)
    if any(f.name in mended for f in here):
        names = ", ".join(dict.fromkeys(f.name for f in here if f.name in mended))
        return StageRun(stage=stage, status=Status.REPAIRED, why=names, seconds=seconds)
    if not measured:
        if stage in (Stage.LOSS, Stage.GRADIENTS) and Stage.FORWARD in walk.skipped:  # measured with it
            walk.skipped.setdefault(stage, walk.skipped[Stage.FORWARD])
        if walk.interrupted and stage not in walk.blocked:
            walk.skipped.setdefault(stage, "the walk was interrupted")
        why = walk.blocked.get(stage) or walk.skipped.get(stage) or _why_unseen(walk, stage)
        status = Status.SKIPPED if stage in walk.skipped else Status.BLOCKED
        return StageRun(stage=stage, status=status, why=why, seconds=seconds)
    if lost := loss_not_learnt(measured[0]):
        if not walk.unmended:
            return StageRun(stage=stage, status=Status.FAILED, why=f"{lost}; no cause was proven", seconds=seconds)
        if not isfinite(first_and_last(measured[0])[1]):
            why = f"{lost}: {_why_unseen(walk, stage)}"
            return StageRun(stage=stage, status=Status.BLOCKED, why=why, seconds=seconds)
    names = ", ".join(dict.fromkeys(f.name for f in here))
    why = f"{WARNED}{names}" if names else describe(measured[0])
    if stage == Stage.DATASET and not names:
        why += _of_all_rows(walk)
    if isinstance(measured[0], EvaluationFacts) and not names:
        why += _guessed_loss(walk, measured[0])
    if stage == Stage.EVALUATION and not here and getattr(measured[0], "present", True) is False:
        in_loop = getattr(measured[0], "in_loop", False)
        why = UNSEEN_EVALUATION if in_loop else NO_EVALUATION_SET
        return StageRun(stage=stage, status=Status.SKIPPED, why=why, seconds=seconds)
    unshown = nothing_learned(measured) and (not names or stage == Stage.OVERFIT)
    if isinstance(measured[0], SetupFacts) and not measured[0].parameters and walk.failures:  # it was never built
        unshown = True
    status = Status.UNSHOWN if unshown else Status.NOTED if is_far(measured) else Status.PASSED
    return StageRun(stage=stage, status=status, why=why, seconds=seconds)


def _of_all_rows(walk: Walk) -> str:
    """How many rows were read to find the extreme ones, of sets that were not read to their end."""
    facts = walk.facts.get(OddRowFacts)
    readings = facts.readings if isinstance(facts, OddRowFacts) else {}
    partly = {n: r for n, r in readings.items() if r.rows is None or r.read < r.rows or r.read > CENSUS_LABELS}
    told = [f"{r.read:,} of {f'{r.rows:,}' if r.rows is not None else 'the'} {n} rows" for n, r in partly.items()]
    return f"; searched for extremes: {', '.join(told)}" if told else ""


def _guessed_loss(walk: Walk, facts: EvaluationFacts) -> str:
    """What an uninformed model's loss is, if an evaluation gives one and training minimizes nothing but that loss."""
    loss = walk.facts.get(LossFacts)
    if not isinstance(loss, LossFacts) or loss.expected is None or loss.value is None or loss.call is None:
        return ""
    alone = loss.call.value is not None and abs(loss.call.value - loss.value) <= SAME_LOSS * abs(loss.value)
    named = any(name in ("eval_loss", "val_loss") for name in facts.metrics)
    return f"; an uninformed model has a loss of {loss.expected:.4g}" if alone and named else ""


def nothing_learned(facts: Sequence[Facts]) -> bool:
    """Whether a stage that trains was walked without showing that it learns, or that one batch can be learned."""
    shown = [not one.shown for one in facts if isinstance(one, LearningFacts)]
    return any(shown) or any(not one.by_heart for one in facts if isinstance(one, OverfitFacts))


def is_far(facts: Sequence[Facts]) -> bool:
    """Whether the loss is far above the chance level of its classes."""
    return any(isinstance(one, LossFacts) and one.is_far_above_chance for one in facts)


def _why_unseen(walk: Walk, stage: Stage) -> str:
    failed = [s for s in sorted(walk.failures) if s < stage]
    if failed:
        return f"the {failed[-1].label} stage failed"
    unmended = [f for f in walk.findings if f.severity == Severity.ERROR and id(f) not in walk.fixed]
    return f"stopped by {unmended[0].name}" if unmended else "no training that can be walked was reached"


def first_and_last(facts: Facts) -> tuple[float, float]:
    """The loss before and after the steps of a stage that trains; zeros for any other stage."""
    if isinstance(facts, OverfitFacts):
        return facts.losses[0], facts.losses[-1]
    return (facts.first, facts.last) if isinstance(facts, BaselineFacts) else (0.0, 0.0)


def loss_not_learnt(facts: Facts) -> str:
    """The remark on a loss that rose or became NaN or infinite while training on its rows; otherwise empty."""
    first, last = first_and_last(facts)
    if not isfinite(last):
        return f"the loss goes from {first:.4g} to {last:.4g}" if isfinite(first) else f"the loss is {first:.4g}"
    if not isinstance(facts, OverfitFacts) or not facts.diverged or not first > 0:
        return ""
    if last <= DIVERGED_FACTOR * first:  # it went up and down: a body that draws as it goes
        return ""
    return f"the loss of one batch rises from {first:.4g} to {last:.4g}"


def describe(facts: Facts) -> str:
    """A stage's facts in a few words, for the table of stages."""
    from trainwright.stages import describe as words

    return words.describe(facts)
