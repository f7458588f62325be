"""A training with several processes: each measures its own data, rank 0 walks, and all end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainwright.core.report import Report, from_dict, to_dict
from trainwright.seams.processes import Exchange, Position, position, starter
from trainwright.stages import RankFacts, Words

_REPORT = "report"


class Ranks:
    """This process among the processes of one training; each process makes its own."""

    def __init__(self) -> None:
        self.position: Position | None = position()
        self._exchange = Exchange(starter())

    @property
    def follows(self) -> bool:
        """Whether another process does the walk."""
        return self.position is not None and self.position.rank > 0

    def put(self, facts: RankFacts) -> None:
        """Hand this process's facts to the one that walks."""
        self._exchange.put(f"rank-{facts.rank}", asdict(facts))

    def put_failure(self, failure: str) -> None:
        """Report that this process ended before its training."""
        assert self.position is not None
        here = self.position
        self.put(RankFacts(rank=here.rank, world_size=here.world_size, believed=here.believed, failure=failure))

    def gather(self, own: RankFacts) -> tuple[RankFacts, ...]:
        """The facts of all processes on this machine; a process that did not report in time gets a failure."""
        assert self.position is not None
        others = [r for r in range(self.position.here) if r != own.rank]
        found = self._exchange.gather([f"rank-{r}" for r in others])
        self._exchange.clear()
        late = {
            "world_size": own.world_size,
            "believed": own.believed,
            "failure": "it did not reach its training in time",
        }
        given = [RankFacts(**found.get(f"rank-{r}", {"rank": r, **late})) for r in others]
        return (own, *given)

    def put_report(self, report: Report) -> None:
        """Hand the walk's report to the process that started this one."""
        self._exchange.put(_REPORT, to_dict(report))


def report_of_children() -> Report | None:
    """The report that a child process handed over, if any."""
    exchange = Exchange(os.getpid())
    said: dict[str, Any] | None = exchange.get(_REPORT)
    if said is None:
        return None  # what the others put there is for the one that still walks
    exchange.clear()
    return from_dict(said)


def remarks(ranks: Sequence[RankFacts], words: Words) -> list[str]:
    """Remarks on differences between the ranks that no rule covers, as sentences."""
    if len(ranks) < 2:
        return []
    said = [f"Rank {r.rank} ended before its training: {r.failure}." for r in ranks if r.failure]
    alive = [r for r in ranks if not r.failure]
    world = ranks[0].world_size
    if all(r.believed < r.world_size for r in alive):
        alone = (
            f"WORLD_SIZE is {world}, but each process runs as if it were alone: {world} independent copies are trained. "
            f"To join them, {words.joined_processes}."
        )
        return [*said, alone]
    same = len({r.batch for r in alive}) == 1 and bool(alive[0].batch) and len(alive) > 1
    if same and not any(r.sharded for r in alive):
        said.append(
            f"All {world} ranks begin with the same batch: no sampler splits the rows between them, so each update sees "
            f"the same rows {world} times. {words.shared_rows} splits them."
        )
    if len({r.weights for r in alive}) > 1:
        said.append(
            "The ranks start from different weights: use the same seed on each, or wrap the model in DistributedDataParallel."
        )
    return said
