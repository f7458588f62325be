"""Short training runs, for any framework: the basis of the overfit test, the baseline and every experiment; and what they show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from trainwright.adapters.base import EvaluatedBatch, ShortRun, StepTaker, Train
from trainwright.core import Outcome, Repair, Trial
from trainwright.core.trial import LOSS
from trainwright.probes.constant import JudgedLoss, all_hits, constant_and_floor, hits_of_classes
from trainwright.stages import OverfitFacts
from trainwright.stages.learning import NO_LOSS
from trainwright.stages.overfit import Hits, measure_overfit
from trainwright.timing import now

MOST_SECONDS = 30.0
# A run whose loss stays above three times the first one for six steps, after a dozen, does not recover within thirty.
LOST_STEPS = 12
LOST_FACTOR = 3.0
# If training warms up, a short run's rate rises over this many steps: a fraction of any real warm-up, but enough for an
# adaptive optimizer's averages to settle.
WARMED_UP = 6


def warmup_updates(schedule: Sequence[tuple[int, float]]) -> int:
    """The update at which a schedule, as (update, fraction of the peak rate), first peaks; 0: it never rises."""
    return max(schedule, key=lambda point: point[1], default=(0, 1.0))[0]


def rate_share(step: int, warmup: int) -> float:
    """The fraction of the peak rate at a step of a short run: it rises over the first steps if training warms up."""
    rise = min(warmup, WARMED_UP)
    return min(1.0, (step + 1) / (rise + 1))


def train(training: StepTaker, request: Train) -> ShortRun:
    """Take steps over the same batches in turn, from the initial weights; then restore the weights."""
    training.reset()
    losses: list[float] = []
    started, failure = now(), None
    shown: dict[str, Any] = {}
    chosen = training.take(request.batches, seed=request.seed)
    training.active.tried = list(request.changes)
    try:
        with training.ready(request.seed):
            training.build_optimizer()
            for step in range(request.steps):
                record = training.take_step(chosen[step % len(chosen)], step)
                if record.failure is not None:
                    failure = record.failure
                    break
                if record.loss is None and losses:
                    break  # the loop ended itself: a `break` at a number of steps
                if record.loss is None:  # gradients without a backward pass: torch.func, or written by hand
                    return ShortRun(skipped=NO_LOSS)
                losses.append(record.loss)
                if not math.isfinite(losses[-1]):
                    losses += [math.nan] * (request.steps - step - 1)
                    break
                if now() - started > MOST_SECONDS or _is_lost(losses):
                    break
            shown = _measure_end(training, chosen)
    finally:
        training.active.tried = []
        training.reset()
    return ShortRun(
        losses=tuple(losses),
        rows=sum(training.rows_of(b) for b in chosen),
        failure=failure,
        seconds=now() - started,
        **shown,
    )


def _measure_end(training: StepTaker, batches: Sequence[Any]) -> dict[str, Any]:
    """Losses and predictions of the batches in evaluation mode, and the loss of a constant prediction, as fields of `ShortRun`."""
    looks: list[EvaluatedBatch] = []
    for batch in batches:
        look = training.evaluate(batch)
        if look is None:
            return {}
        looks.append(look)
    losses = [look.loss for look in looks]
    answers = [look.losses[0].answers if len(look.losses) == 1 else ([], []) for look in looks]
    constant, floor = constant_and_floor([look.losses for look in looks], losses)
    is_complete = all(predicted for predicted, _ in answers)
    return {
        "evaluated": sum(losses) / len(losses),
        "constant": constant,
        "floor": floor,
        "predictions": tuple(c for predicted, _ in answers for c in predicted) if is_complete else (),
        "labels": tuple(c for _, true in answers for c in true) if is_complete else (),
        "hits": all_hits([_hits_of(look.losses) for look in looks]),
    }


def _hits_of(calls: Sequence[JudgedLoss]) -> Hits | None:
    """Of a batch's only loss call: of the classes of its rows, or of all that it compares where rows have none."""
    return hits_of_classes(*calls[0].answers) or calls[0].hits if len(calls) == 1 else None


def _is_lost(losses: Sequence[float]) -> bool:
    """Whether a run has diverged for good, so that more steps would only cost time."""
    return len(losses) >= LOST_STEPS and min(losses[-LOST_STEPS // 2 :]) > LOST_FACTOR * losses[0] > 0


def overfit_facts(run: ShortRun) -> OverfitFacts:
    """The facts of steps on one batch."""
    return measure_overfit(
        run.losses,
        run.rows,
        predicted_classes=len(set(run.predictions)) or None,
        batch_classes=len(set(run.labels)) or None,
        floor=run.floor,
        constant=run.constant,
        evaluated=run.evaluated,
        hits=run.hits,
        labels=dict(sorted(Counter(run.labels).items())),
    )


def outcome_of(trial: Trial, steps: int, before: Sequence[ShortRun], after: Sequence[ShortRun]) -> Outcome:
    """The outcome of a trial, from its runs without and with the change."""
    if any(run.skipped for run in (*before, *after)):
        return trial.cut_off
    return Outcome(
        changed=trial.change.does,
        before=tuple(_value(r, steps, trial) for r in before),
        after=tuple(_value(r, steps, trial) for r in after),
        judged_by=trial.judged_by,
        start=tuple(r.losses[0] if r.losses else math.nan for r in before),
        constant=_constants(before, after),
        steps=steps,
        without_effect=_agree(before, after, trial.batches),
    )


def key_of(trial: Trial, change: Repair | None, seed: int) -> tuple[Any, ...]:
    """What a run of a trial is known by."""
    changes = (*trial.alongside, *((change,) if change else ()))
    key = (", ".join(c.does for c in changes), trial.batches, seed)
    # Classes are predicted only at the end of a run, so a longer run cannot stand in for a shorter one.
    return key if trial.judged_by == LOSS else (*key, trial.steps)


def _agree(before: Sequence[ShortRun], after: Sequence[ShortRun], batches: int) -> bool:
    """Whether a change did nothing: both arms are the same to the last bit, although the loss of a batch moves.

    A loss that stays as it was is the same with any change, of a model that gets no gradient, for example.
    """
    moved = all(any(x != y for x, y in zip(r.losses, r.losses[batches:])) for r in before)
    return moved and all((b.losses, b.predictions) == (a.losses, a.predictions) for b, a in zip(before, after))


def _constants(before: Sequence[ShortRun], after: Sequence[ShortRun]) -> tuple[float, ...]:
    """The loss of a constant prediction on each seed's rows, from either arm; empty if one is unknown."""
    known = [a.constant if b.constant is None else b.constant for b, a in zip(before, after)]
    return tuple(c for c in known if c is not None) if None not in known else ()


def covers(run: ShortRun | None, steps: int) -> bool:
    """Whether a run that was already made has the first steps of one that is asked for."""
    return run is not None and (run.failure is not None or bool(run.skipped) or len(run.losses) >= steps)


def _value(run: ShortRun, steps: int, trial: Trial) -> float:
    """The number by which a run is judged; NaN if it failed or has no such number."""
    if trial.judged_by == LOSS:
        return mean_end(run, steps)
    if run.failure is not None or not run.predictions:
        return math.nan
    wrong = [p != t for p, t in zip(run.predictions, run.labels)]
    shares = [fmean(w for w, t in zip(wrong, run.labels) if t == label) for label in set(run.labels)]
    return fmean(shares)


def mean_end(run: ShortRun, steps: int) -> float:
    """The mean loss over the last quarter of the first steps; NaN if it failed or any of them is."""
    losses = run.losses[:steps]
    if (run.failure is not None and len(losses) < steps) or not losses:
        return math.nan
    tail = losses[-max(1, len(losses) // 4) :]
    return sum(tail) / len(tail)
