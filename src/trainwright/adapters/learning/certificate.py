"""A training over fresh batches, looked at on rows that it does not train on; for any framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.learning.information import measure_information
from trainwright.adapters.learning.learner import Judged, Trained
from trainwright.probes.row_losses import Compared, LossRows, compare, sum_of, weights_of
from trainwright.stages.learning import (
    FEWEST_HELD_ROWS,
    FEWEST_UPDATES,
    LearningFacts,
    LearningLook,
    MostAnswered,
)
from trainwright.timing import now

# At most so many batches are read and kept for the steps; a longer training goes through them again.
MOST_BATCHES = 256
MOST_HELD_ROWS = 512


def measure_trained(
    learner: Trained, *, updates: int, planned: int | None, seconds: float, reset: Callable[[], None]
) -> LearningFacts | None:
    """Look at a training that has come to its end: with the weights that it has, and with those that it began with; None: its loss has no constant
    prediction to compare with, or too few rows are held out.

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
        return None
    terms = len(judged.calls) if judged is not None else 0
    trained = _trained_look(learner, batches, updates)
    is_asked = terms == 1 and not looks[0].below and updates >= FEWEST_UPDATES
    information = measure_information(learner, batches, seconds) if is_asked else None
    reset()
    if not _look(learner, held, 0, looks):
        return None
    return LearningFacts(
        held_out=source,
        rows=_count(learner, held),
        planned=planned,
        looks=tuple(reversed(looks)),
        trained=trained,
        information=information,
    )


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
