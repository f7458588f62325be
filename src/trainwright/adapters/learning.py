"""A training that has come to its end, looked at on rows that it does not train on, and, where it was not seen to learn, what each point
of its forward pass tells of the label; for any framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from trainwright.adapters.base import EvaluatedBatch
from trainwright.frameworks.label_names import ARGUMENTS
from trainwright.probes.constant import JudgedLoss, constant_and_floor
from trainwright.probes.information import (
    FEWEST_ROWS,
    MOST_ROWS,
    Result,
    Targets,
    read_given,
    read_station,
    targets_for,
)
from trainwright.seams.failures.blame import tolerated
from trainwright.stages import CLASS_LOSSES, DISTANCES, EvaluatedLoss, Information, LearningFacts, Station
from trainwright.stages.learning import FEWEST_HELD_ROWS, MostAnswered
from trainwright.timing import now

# At most so many batches are read, and so many rows that are held out.
MOST_BATCHES = 256
MOST_HELD_ROWS = 512
# A forward pass with more results is read at so many points, evenly spread.
MOST_STATIONS = 32


@dataclass(frozen=True, kw_only=True)
class ForwardPass:
    """One batch along its forward pass."""

    given: Mapping[str, np.ndarray]
    """What the model is given, by the argument's name: (rows, …)."""
    results: Sequence[Result]
    losses: Sequence[JudgedLoss]


class Trained(Protocol):
    """What is needed of a training to judge what it has learned."""

    def fresh(self, most: int, seconds: float) -> list[Any]:
        """The batches of an epoch as training draws them, at most this many."""

    def held_out(self, rows: int, seconds: float) -> list[Any]:
        """Batches of the evaluation set with about this many rows, in the form of training batches; may be empty."""

    def count_rows(self, batch: Any) -> int:
        """How many rows a batch has; 0: it has none."""

    def passed(self, batch: Any, chosen: frozenset[int] | None) -> ForwardPass | None:
        """The rows of a batch along its forward pass in evaluation mode, with what the loss is given.

        Args:
            chosen: the numbers of the results to keep; None: as many as there may be.
        """

    def judged(self, batch: Any) -> EvaluatedBatch | None:
        """The loss calls of a batch in evaluation mode, leaving everything as it was; None if that is not possible."""


def measure_trained(
    learner: Trained, *, updates: int, planned: int | None, seconds: float, reset: Callable[[], None]
) -> LearningFacts | None:
    """Look at a training that has come to its end: with the weights that it has, and with those that it began with; None: its loss has no constant
    prediction to compare with, or too few rows are held out.

    Args:
        updates: how many it has made: enough to have learned something.
        seconds: for reading batches of each set, and for each look at them.
        reset: gives the model its first weights.
    """
    batches = learner.fresh(MOST_BATCHES, seconds)
    held = learner.held_out(MOST_HELD_ROWS, seconds)
    source = "evaluation" if _count(learner, held) >= FEWEST_HELD_ROWS else "training"
    held = held if source == "evaluation" else batches[: max(1, len(batches) // 4)]
    started = now()
    if held:
        learner.judged(held[0])
    most = max(1, int(seconds / max(now() - started, 1e-3)))
    held, batches = held[:most], batches[:most]
    last = _evaluate(learner, held, updates) if _count(learner, held) >= FEWEST_HELD_ROWS else None
    if last is None:
        return None
    trained = _evaluate(learner, _trained_last(learner, batches, updates), updates)
    information = _information(learner, batches, seconds) if last.held else None
    reset()
    first = _evaluate(learner, held, 0)
    if first is None:
        return None
    return LearningFacts(
        held_out=source,
        rows=_count(learner, held),
        planned=planned,
        evaluations=(first, last),
        trained=trained,
        information=information,
    )


def read_batches(begin: Callable[[], Iterable[Any]], seconds: float, share: Callable[[Any], float]) -> list[Any]:
    """The first batches of a pass, at least one, until there are enough, the time is over, or one raises.

    Args:
        share: which part of enough a batch is.
    """
    started, read, filled = now(), list[Any](), 0.0
    with tolerated():  # data that raise are reported with the batches
        for batch in begin():
            read.append(batch)
            filled += share(batch)
            if filled > 1 - 1e-9 or now() - started > seconds:
                break
    return read


def _count(learner: Trained, batches: Iterable[Any]) -> int:
    return sum(map(learner.count_rows, batches))


def _trained_last(learner: Trained, batches: Sequence[Any], updates: int) -> list[Any]:
    """Some of the batches that were trained on last."""
    taken: list[Any] = []
    for batch in reversed(batches[: max(1, updates)]):
        taken.append(batch)
        if _count(learner, taken) >= MOST_HELD_ROWS:
            break
    return taken


def _evaluate(learner: Trained, batches: Iterable[Any], updates: int) -> EvaluatedLoss | None:
    """A look at the batches; None if their losses have no constant prediction, as of several terms."""
    judged: list[EvaluatedBatch] = []
    for batch in batches:
        one = learner.judged(batch)
        if one is None:
            return None
        judged.append(one)
    constant, _ = constant_and_floor([one.losses for one in judged], [one.loss for one in judged])
    if constant is None or not np.isfinite(constant):
        return None
    calls = [one.losses[0] for one in judged]
    loss = np.average([one.loss for one in judged], weights=[call.mass for call in calls])
    return EvaluatedLoss(updates=updates, loss=float(loss), constant=constant, most_answered=_most_answered(calls))


def _most_answered(calls: Sequence[JudgedLoss]) -> MostAnswered | None:
    """By the answers to a loss of classes, of the rows that it counts."""
    if any(c.function not in CLASS_LOSSES or c.aims.ndim > 1 or not c.answers[0] for c in calls):
        return None
    answers, labels = (np.concatenate([np.array(c.answers[of])[c.counted] for c in calls]) for of in (0, 1))
    values, counts = np.unique(answers, return_counts=True)
    most = values[counts.argmax()]
    return MostAnswered(answer=int(most), share=counts.max() / len(answers), of_labels=float((labels == most).mean()))


# Where the label can be read -----------------------------------------------------------------------------------------


def _information(learner: Trained, batches: Sequence[Any], seconds: float) -> Information | None:
    """What each point of the forward pass tells of the label, with the weights as they are now; None if the rows have no
    single label, are too few, or the passes differ from each other."""
    passes = _passes(learner, batches, seconds)
    targets = _targets(passes) if passes else None
    found = read_given(_given(passes, targets), targets) if targets is not None else None
    if targets is None or found is None:
        return None
    return replace(found, stations=tuple(_stations(passes, targets)))


def _passes(learner: Trained, batches: Sequence[Any], seconds: float) -> list[ForwardPass]:
    started, chosen = now(), None
    passes: list[ForwardPass] = []
    rows = 0
    for batch in batches:
        one = learner.passed(batch, chosen)
        if one is None or not one.losses or not one.given:
            return []
        if chosen is None:
            chosen = _spread(len(one.results))
        passes.append(one)
        rows += len(next(iter(one.given.values())))
        if rows >= MOST_ROWS or now() - started > seconds:
            break
    same = len({tuple((r.name, r.module, r.where) for r in p.results) for p in passes}) == 1
    return passes if same and rows >= FEWEST_ROWS else []


def _spread(count: int) -> frozenset[int]:
    """So many numbers below `count`, evenly spread, with the first and the last."""
    if count <= MOST_STATIONS:
        return frozenset(range(count))
    return frozenset(round(i * (count - 1) / (MOST_STATIONS - 1)) for i in range(MOST_STATIONS))


def _targets(passes: Sequence[ForwardPass]) -> Targets | None:
    """What the loss is given for each row; None if it is given more or less than one target a row."""
    functions, aims = {p.losses[-1].function for p in passes}, [p.losses[-1].aims for p in passes]
    rows = [len(next(iter(p.given.values()))) for p in passes]
    if any(len(one) != count for one, count in zip(aims, rows)):
        return None
    if len(functions) != 1 or len({one.shape[1:] for one in aims}) != 1:
        return None
    return targets_for(np.concatenate(aims)[:MOST_ROWS], classes=functions.isdisjoint(DISTANCES))


def _given(passes: Sequence[ForwardPass], targets: Targets) -> dict[str, list[np.ndarray]]:
    """The rows of the model's inputs, without what is equal to the targets."""
    rows = len(targets.columns)
    found = {}
    for name in passes[0].given:
        if any(name not in p.given for p in passes) or name.split(".")[-1] in ARGUMENTS:
            continue
        if not all(_is_target(p, name) for p in passes):
            found[name] = [row for p in passes for row in p.given[name]][:rows]
    return found


def _is_target(one: ForwardPass, name: str) -> bool:
    given, targets = one.given[name], one.losses[-1].targets
    return given.size == targets.size and bool(np.array_equal(given.reshape(-1), targets.reshape(-1)))


def _stations(passes: Sequence[ForwardPass], targets: Targets) -> Iterator[Station]:
    for results in zip(*(p.results for p in passes)):
        kept = [r.values for r in results if r.values is not None]
        if len(kept) == len(passes) and len({v.shape[1:] for v in kept}) == 1:
            first = results[0]
            read = read_station(first.name, np.concatenate(kept)[: len(targets.columns)], targets)
            yield replace(read, module=first.module, kind=first.kind, where=first.where)
        # Others were passed over, or are of another width in each batch.
