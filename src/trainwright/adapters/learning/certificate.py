"""A training over fresh batches, looked at on rows that it does not train on; for any framework."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainwright.adapters.base import Learn, ReceivedRows, Training
from trainwright.adapters.learning.information import measure_information
from trainwright.adapters.learning.learner import Judged, Learner, Trained
from trainwright.adapters.learning.received import receive_rows
from trainwright.core import Failure
from trainwright.probes.row_losses import Compared, LossRows, compare, sum_of, weights_of
from trainwright.stages.learning import (
    FEWEST_HELD_ROWS,
    FEWEST_UPDATES,
    NO_CONSTANT,
    NO_ROWS,
    TOO_FEW_ROWS,
    LearningFacts,
    LearningLook,
    MostAnswered,
)
from trainwright.timing import now

FIRST_LOOK = 16
# At most so many batches are read and kept for the steps; a longer training goes through them again.
MOST_BATCHES = 256
MOST_HELD_ROWS = 512
# The share of the training rows that is held out where there are no evaluation rows.
HELD_SHARE = 0.25
# A training whose number of updates is unknown is followed for so many.
MOST_UPDATES = 2_048
# Reading what the forward pass keeps of the label takes at most so long, and some seconds for the probe.
PROFILE_SECONDS = 10.0
# Answers for the rows that are shown one by one take at most so long, for each of the two sets.
SHOWN_SECONDS = 1.0
# Steps of which the mean loss is told, at the beginning and at the end.
AVERAGED = 8
# The share of the time that reading batches may take.
READING_SHARE = 0.25


@dataclass(frozen=True)
class _Rows:
    """What is trained on and what is held out."""

    trained: list[Any]
    whole: list[Any]
    """The batches of `trained` as the training draws them, with the rows that were held out."""
    held: list[Any]
    source: str


def learn(learner: Learner, request: Learn, shown: list[ReceivedRows] | None = None) -> LearningFacts:
    """Train from the initial weights until learning is shown, the plan is done or the time is over; then restore.

    Args:
        shown: takes some rows with the answers of the trained model.
    """
    started = now()
    training = learner.training
    training.reset()
    training.active.tried = list(request.changes)
    try:
        return _learn(learner, request, started, shown if request.shows else None)
    finally:
        training.active.tried = []
        training.reset()


def _learn(learner: Learner, request: Learn, started: float, shown: list[ReceivedRows] | None = None) -> LearningFacts:
    training, planned = learner.training, request.planned
    rows = _rows(learner, planned, READING_SHARE * request.seconds)
    if not isinstance(rows, _Rows):
        return LearningFacts(planned=planned, unknown=rows)
    run = _Run()
    with training.ready(request.seed):
        training.build_optimizer()
        if not _look(learner, rows.held, 0, run.looks):
            return LearningFacts(planned=planned, unknown=NO_CONSTANT)
        _train(learner, rows, run, most=min(planned or MOST_UPDATES, MOST_UPDATES), until=started + request.seconds)
        trained = _trained_look(learner, rows.trained, learner.window * run.updates)
        information = None
        judged = learner.judged(rows.held[0])
        terms = len(judged.calls) if judged is not None else 0
        if not request.changes and run.failure is None and not _is_shown(run.looks) and run.updates >= FEWEST_UPDATES:
            information = measure_information(learner, rows.trained, PROFILE_SECONDS) if terms == 1 else None
        if shown is not None and run.failure is None:
            shown[:] = _shown(learner, rows, run.updates)
    failure = _again(training, rows.whole[run.updates % len(rows.whole)], run.failure, request.seed)
    return LearningFacts(
        held_out=rows.source,
        rows=_count(learner, rows.held),
        planned=planned,
        looks=tuple(run.looks),
        trained=trained,
        steps=_ends(run.losses),
        terms=terms,
        information=information,
        cut=run.cut,
        failure=failure,
    )


def measure_trained(
    learner: Trained, *, updates: int, planned: int | None, seconds: float, reset: Callable[[], None]
) -> LearningFacts:
    """Look at a training that has come to its end: with the weights that it has, and with those that it began with.

    Args:
        updates: how many it has made.
        seconds: for reading batches of each set, and for each look at them.
        reset: gives the model its first weights.
    """
    batches = learner.fresh(MOST_BATCHES, seconds)
    held = learner.held_out(MOST_HELD_ROWS, seconds)
    source = "evaluation" if _count(learner, held) >= FEWEST_HELD_ROWS else "training"
    held = held if source == "evaluation" else batches[: max(1, len(batches) // 4)]
    started = now()
    judged = learner.judged(held[0]) if held else None
    most = max(1, int(seconds / max(now() - started, 1e-3)))
    held, batches = held[:most], batches[:most]
    looks: list[LearningLook] = []
    if not held or _count(learner, held) < FEWEST_HELD_ROWS or not _look(learner, held, updates, looks):
        return LearningFacts(planned=planned, unknown=NO_CONSTANT if held else TOO_FEW_ROWS)
    terms = len(judged.calls) if judged is not None else 0
    trained = _trained_look(learner, batches, updates)
    is_asked = terms == 1 and not looks[0].below and updates >= FEWEST_UPDATES
    information = measure_information(learner, batches, seconds) if is_asked else None
    reset()
    if not _look(learner, held, 0, looks):
        return LearningFacts(planned=planned, unknown=NO_CONSTANT)
    return LearningFacts(
        held_out=source,
        rows=_count(learner, held),
        planned=planned,
        looks=tuple(reversed(looks)),
        trained=trained,
        terms=terms,
        information=information,
    )


def _shown(learner: Learner, rows: _Rows, updates: int) -> list[ReceivedRows]:
    """Rows of both kinds, with the weights as they are now."""
    each = [(rows.held, True), (rows.trained, False)]
    found = [
        receive_rows(learner, batches, is_held_out=is_held_out, updates=updates, seconds=SHOWN_SECONDS)
        for batches, is_held_out in each
    ]
    return [one for of_set in found for one in of_set]


def _ends(losses: Sequence[float]) -> tuple[float, float] | None:
    """The mean of the first losses, and that of the last."""
    if len(losses) < 2 * AVERAGED:
        return None
    return sum(losses[:AVERAGED]) / AVERAGED, sum(losses[-AVERAGED:]) / AVERAGED


@dataclass
class _Run:
    """What came of the steps."""

    looks: list[LearningLook] = field(default_factory=list)
    updates: int = 0
    losses: list[float] = field(default_factory=list)
    """What each step minimized."""
    cut: str = ""
    failure: Failure | None = None


def _train(learner: Learner, rows: _Rows, run: _Run, *, most: int, until: float) -> None:
    """Take steps until learning is shown, or there are enough of them, or the time is over."""
    wanted = FIRST_LOOK
    batches = itertools.cycle(rows.trained)
    while run.updates < most:
        record = learner.training.take_step(next(batches), run.updates, batches)
        if record.failure is not None:
            run.failure, run.cut = record.failure, f"the next step raised {record.failure.type}"
            return
        if record.loss is not None and not math.isfinite(record.loss):
            run.cut = f"the loss of the next step is {record.loss}"
            return
        run.updates += 1
        run.losses += [record.loss] if record.loss is not None else []
        over = now() > until
        if run.updates in (wanted, most) or over:
            wanted *= 2
            if not _look(learner, rows.held, run.updates, run.looks):
                run.cut = "the loss of the held-out rows is not known after more"
                return
            if _is_shown(run.looks) or over:
                return


def _again(training: Training, batch: Any, failure: Failure | None, seed: int) -> Failure | None:
    """What a step raised, if a step on the same batch from the initial weights raises it, too."""
    if failure is None:
        return None
    training.reset()
    with training.ready(seed):
        training.build_optimizer()
        again = training.take_step(batch, 0).failure
    return again if again is not None and again.type == failure.type else None


def _is_shown(looks: Sequence[LearningLook]) -> bool:
    return looks[-1].below and looks[-1].loss < looks[0].loss


def _rows(learner: Learner, planned: int | None, seconds: float) -> _Rows | str:
    """The batches to train on and those to look at; otherwise why there are none."""
    started = now()
    batches = learner.fresh(min(MOST_BATCHES, learner.window * (planned or MOST_BATCHES) + 1), seconds)
    if not batches or not learner.judged(batches[0]):
        return NO_CONSTANT
    known: list[list[int]] = []
    for batch in batches:
        found = learner.digests(batch)
        if not found:
            return NO_ROWS
        known.append(found)
        if now() - started > 2 * seconds:
            break
    batches = batches[: len(known)]
    held = learner.held_out(MOST_HELD_ROWS, seconds)
    if held and _count(learner, held) >= FEWEST_HELD_ROWS and learner.judged(held[0]):
        return _Rows(batches, batches, held, "evaluation")
    return _split(learner, batches, known) or TOO_FEW_ROWS


def _split(learner: Learner, batches: Sequence[Any], digests: Sequence[Sequence[int]]) -> _Rows | None:
    """Hold out some of the rows, wherever they occur in the batches."""
    rows = sorted({digest for of_batch in digests for digest in of_batch})
    most = min(MOST_HELD_ROWS, int(HELD_SHARE * len(rows)))
    if most < FEWEST_HELD_ROWS:
        return None
    chosen = np.random.default_rng(0).choice(len(rows), most, replace=False)
    held = {rows[i] for i in chosen.tolist()}
    kept, whole, out, known = [], [], [], set[int]()
    for batch, of_batch in zip(batches, digests):
        stays = [i for i, digest in enumerate(of_batch) if digest not in held]
        leaves = [i for i, digest in enumerate(of_batch) if digest in held and digest not in known]
        known |= {of_batch[i] for i in leaves}
        if stays:
            whole.append(batch)
            kept.append(batch if len(stays) == len(of_batch) else learner.chosen_rows(batch, stays))
        if leaves:
            out.append(learner.chosen_rows(batch, leaves))
    return _Rows(kept, whole, out, "training") if kept and out else None


def _look(
    learner: Trained, batches: Iterable[Any], updates: int, looks: list[LearningLook], *, training: bool = False
) -> bool:
    """Add a look at the batches; returns whether that was possible."""
    judged = _judged(learner, batches, training)
    terms = [compare(term) for term in zip(*(j.calls for j in judged))] if judged else []
    known = [t for t in terms if t is not None]
    if not known or len(known) < len(terms) or not all(map(Compared.is_finite, known)):
        return False
    told, shares = min(known, key=lambda c: c.deviations), tuple[float, ...]()
    if len(known) > 1:
        weights = weights_of([[c.scored.mean for c in j.calls] for j in judged], [j.total for j in judged])
        told = sum_of(known, weights) if weights is not None else told
        shares = tuple(t.gain / t.constant if t.constant > 0 else 0.0 for t in known)
    looks.append(
        LearningLook(
            updates=updates,
            loss=told.loss,
            constant=told.constant,
            error=told.error,
            shares=shares,
            most_answered=_most_answered([j.calls[0] for j in judged]) if len(known) == 1 else None,
        )
    )
    return True


def _most_answered(calls: Sequence[LossRows]) -> MostAnswered | None:
    """By the answers to a loss of classes, of the rows that it counts."""
    if any(c.certainties is None or c.answers is None or c.targets.ndim != 1 for c in calls):
        return None
    counted = [c.scored.weights > 0 for c in calls]
    answers = np.concatenate([np.asarray(c.answers)[rows] for c, rows in zip(calls, counted)])
    labels = np.concatenate([c.targets[rows] for c, rows in zip(calls, counted)])
    if not len(answers) or len(answers) != len(labels):
        return None
    values, counts = np.unique(answers, return_counts=True)
    most = values[counts.argmax()]
    return MostAnswered(answer=int(most), share=counts.max() / len(answers), of_labels=float((labels == most).mean()))


def _trained_look(learner: Trained, batches: Sequence[Any], updates: int) -> LearningLook | None:
    """A look at some of the rows that were trained on last."""
    taken, rows = [], 0
    for batch in reversed(batches[: max(1, min(updates, len(batches)))]):
        taken.append(batch)
        rows += _count(learner, [batch])
        if rows >= MOST_HELD_ROWS:
            break
    looks: list[LearningLook] = []
    _look(learner, taken, updates, looks)
    return looks[0] if looks else None


def _judged(learner: Trained, batches: Iterable[Any], training: bool) -> list[Judged]:
    """The losses of the batches; empty unless all are known and have as many calls."""
    found: list[Judged] = []
    for batch in batches:
        one = learner.judged(batch, training=training)
        if one is None or (found and len(one.calls) != len(found[0].calls)):
            return []
        found.append(one)
    return found


def _count(learner: Trained, batches: Iterable[Any]) -> int:
    return sum(len(learner.digests(b) or ()) for b in batches)
