"""What a probe reads of the label along the pipeline, for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainwright.core import Facts
from trainwright.core.report import ProfilePoint
from trainwright.stages import DatasetFacts, LearningFacts, Station

# A longer forward pass is shown where something changes, and else in even steps.
MOST_SHOWN = 14
CHANGE = 0.1


def profile_of(facts: Mapping[type[Facts], Facts]) -> tuple[ProfilePoint, ...]:
    """The points of the profile; empty if it was not measured."""
    learning, dataset = facts.get(LearningFacts), facts.get(DatasetFacts)
    found = learning.information if isinstance(learning, LearningFacts) else None
    if found is None:
        return ()
    raw = dataset.alignment if isinstance(dataset, DatasetFacts) else None
    first = []
    if raw is not None and raw.accuracy is not None and raw.permuted_accuracy is not None:
        share = (raw.accuracy - raw.permuted_accuracy) / max(1 - raw.permuted_accuracy, 1e-9)
        first = [
            ProfilePoint(
                name="rows of the data set",
                share=max(0.0, share),
                accuracy=raw.accuracy,
                permuted=raw.permuted_accuracy,
            )
        ]
    return (*first, *(_point(s) for s in _chosen((found.given, *found.stations))))


def _point(station: Station) -> ProfilePoint:
    named = f"{station.name} ({station.kind})" if station.kind and station.kind != station.name else station.name
    return ProfilePoint(
        name=named, share=station.share, accuracy=station.accuracy, permuted=station.permuted, where=station.where
    )


def _chosen(stations: Sequence[Station]) -> list[Station]:
    """The first and the last, those at which the share changes, and others evenly between them."""
    last = len(stations) - 1
    even = {round(i * last / (MOST_SHOWN // 2)) for i in range(MOST_SHOWN // 2 + 1)}
    changes = sorted(range(1, last + 1), key=lambda i: -abs(stations[i].share - stations[i - 1].share))
    changes = [i for i in changes if abs(stations[i].share - stations[i - 1].share) > CHANGE][: MOST_SHOWN // 4]
    wanted = {*even, *changes, *(i - 1 for i in changes)} if last >= MOST_SHOWN else set(range(last + 1))
    return [s for i, s in enumerate(stations) if i in wanted]
