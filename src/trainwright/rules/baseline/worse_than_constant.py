"""TW901 worse-than-constant: the model does not beat a constant prediction after a short run, nor is it about to.

Why it matters: Predicting the mean or the class frequencies takes no model. Until the loss is lower than that, nothing
was learned from the inputs.
Evidence: Both losses on the same rows, and the pace of the short run extrapolated over the planned updates. It is more
than a note if as many updates as the whole training plans leave the loss at twice that of the constant prediction, on
three seeds.
Fix (manual): Plan more updates, or raise the learning rate; if it is a default, choose one. Give targets mean 0 and
standard deviation 1, or set the last layer's bias to their mean.
"""

from __future__ import annotations

from statistics import fmean

from trainwright.core import Diagnosis, Fate, Finding, Fix, Outcome, Place, Role, Severity, Trial, rule
from trainwright.rules.rates import rate_to_try
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages import BaselineFacts, OptimizerFacts, OverfitFacts, SetupFacts

BATCHES = 4
# A training of more updates is not run in full to see where it ends.
MOST_UPDATES = 120
# A short training that is still improving may end above the constant; twice its loss needs more than a few updates.
FAR_ABOVE = 2.0


@rule("TW901", Severity.WARNING, residual=True, general=True, foretells=Fate.LEARNS_NOTHING)
def worse_than_constant(
    baseline: BaselineFacts, overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts
) -> Diagnosis:
    """A loss above a constant prediction's that, at its current pace, will stay above it for all planned updates."""
    constant, planned = baseline.constant, optimizer.planned_updates
    if constant is None or planned is None or overfit.learnt or baseline.predicted_classes == 1:
        return
    if min(baseline.last, baseline.evaluated if baseline.evaluated is not None else baseline.last) <= constant:
        return
    if baseline.last - _pace(baseline) * max(0, planned - baseline.steps) <= constant:
        return
    outcome = None
    if planned <= MOST_UPDATES and baseline.last > FAR_ABOVE * constant:
        outcome = yield Trial(change=scale_learning_rate(10.0), steps=planned, batches=BATCHES)
        ended = bool(outcome.before) and outcome.steps >= planned and min(outcome.before) > FAR_ABOVE * constant
        outcome = outcome if ended else None
    where = setup.place(Role.LEARNING_RATE, Role.ARGUMENTS, Role.TRAINER)
    yield _finding(baseline, planned, constant, outcome, where, rate_to_try(optimizer))


def _pace(baseline: BaselineFacts) -> float:
    """How much the loss falls per step, measured between the first and the last fifth of the run."""
    return max(0.0, (baseline.first - baseline.last) / max(1.0, 0.8 * baseline.steps))


def _finding(
    baseline: BaselineFacts, planned: int, constant: float, outcome: Outcome | None, where: Place | None, rate: str
) -> Finding:
    steps, reached = (baseline.steps, baseline.last) if outcome is None else (planned, fmean(outcome.before))
    share = "as many as the training plans" if outcome else f"of {planned:,} planned"
    return Finding(
        severity=Severity.WARNING if outcome else Severity.NOTE,
        message=f"after {steps} updates, {share}, the loss is {reached:.4g}; a constant prediction gives {constant:.4g} on "
        f"these rows" + ("" if outcome else ", and at this pace training will not reach it"),
        measured={
            "first": baseline.first,
            "last": reached,
            "constant": constant,
            "updates": steps,
            "planned_updates": planned,
        },
        where=where,
        proof=outcome,
        fix=Fix(
            does=f"plan more updates or {rate}; for a regression, standardize the "
            "targets or set the last layer's bias to their mean"
        ),
    )
