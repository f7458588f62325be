"""Where along the forward pass the label can be read, of a training that was not seen to learn; for any framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainwright.adapters.learning.learner import Passed, Trained
from trainwright.probes.information import (
    FEWEST_ROWS,
    MOST_ROWS,
    Reading,
    Targets,
    read_given,
    read_station,
    targets_for,
)
from trainwright.stages import DISTANCES, Information, Station
from trainwright.timing import now

# A forward pass with more results is read at so many points, evenly spread.
MOST_STATIONS = 32


def measure_information(learner: Trained, batches: Sequence[Any], seconds: float) -> Information | None:
    """What each point of the forward pass tells of the label, with the weights as they are now.

    Args:
        batches: training batches.
        seconds: time limit of the passes.

    Returns:
        None if the rows have no single label, are too few, or the passes differ from each other.
    """
    passes = _passes(learner, batches, seconds)
    targets = _targets(passes) if passes else None
    if targets is None:
        return None
    found = read_given(_given(passes, targets), targets)
    if found is None:
        return None
    return Information(
        rows=len(targets.columns),
        power=found.power,
        structure=found.structure,
        single=found.single,
        given=_station(found.reading, name="the model's input"),
        stations=tuple(_stations(passes, targets)),
    )


def _passes(learner: Trained, batches: Sequence[Any], seconds: float) -> list[Passed]:
    started, chosen = now(), None
    passes: list[Passed] = []
    rows = 0
    for batch in batches:
        one = learner.passed(batch, chosen)
        if one is None or not one.losses or not one.given:
            return []
        if chosen is None:
            chosen = spread(len(one.results))
        passes.append(one)
        rows += len(next(iter(one.given.values())))
        if rows >= MOST_ROWS or now() - started > seconds:
            break
    same = len({tuple((r.name, r.module, r.where) for r in p.results) for p in passes}) == 1
    return passes if same and rows >= FEWEST_ROWS else []


def spread(count: int) -> frozenset[int]:
    """So many numbers below `count`, evenly spread, with the first and the last."""
    if count <= MOST_STATIONS:
        return frozenset(range(count))
    return frozenset(round(i * (count - 1) / (MOST_STATIONS - 1)) for i in range(MOST_STATIONS))


def _targets(passes: Sequence[Passed]) -> Targets | None:
    """What the loss is given for each row; None if it is given more or less than one target a row."""
    judged = [p.losses[-1] for p in passes]
    rows = [len(next(iter(p.given.values()))) for p in passes]
    if any(len(j.targets) != count for j, count in zip(judged, rows)):
        return None
    if len({(j.function, j.targets.shape[1:]) for j in judged}) != 1:
        return None
    values = np.concatenate([j.targets for j in judged])[:MOST_ROWS]
    return targets_for(values, classes=judged[0].function not in DISTANCES)


def _given(passes: Sequence[Passed], targets: Targets) -> dict[str, list[np.ndarray]]:
    """The rows of the model's inputs, without what is equal to the targets."""
    rows = len(targets.columns)
    found = {}
    for name in passes[0].given:
        if any(name not in p.given for p in passes) or name.split(".")[-1] in ("labels", "label", "label_ids"):
            continue
        column = [row for p in passes for row in p.given[name]][:rows]
        if all(_is_target(p, name) for p in passes):
            continue
        found[name] = column
    return found


def _is_target(one: Passed, name: str) -> bool:
    given, targets = one.given[name], one.losses[-1].targets
    return given.size == targets.size and bool(np.array_equal(given.reshape(-1), targets.reshape(-1)))


def _stations(passes: Sequence[Passed], targets: Targets) -> list[Station]:
    rows = len(targets.columns)
    found = []
    for results in zip(*(p.results for p in passes)):
        kept = [r.values for r in results if r.values is not None]
        if len(kept) < len(passes) or len({v.shape[1:] for v in kept}) != 1:
            continue  # passed over, or of another width in each batch
        first = results[0]
        reading = read_station(np.concatenate(kept)[:rows], targets)
        found.append(_station(reading, name=first.name, module=first.module, kind=first.kind, where=first.where))
    return found


def _station(reading: Reading, **about: Any) -> Station:
    return Station(
        score=reading.score, share=reading.share, accuracy=reading.accuracy, permuted=reading.permuted, **about
    )
