"""One of several processes that train together: it tells with what it begins to train, and the first compares what all told."""

from __future__ import annotations

import base64
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any, NoReturn

from trainwright.core import Failure
from trainwright.errors import ScriptLeft
from trainwright.frameworks.packages import TrainingKind
from trainwright.look.kinds import kind_of
from trainwright.look.results import LookResult
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import seen, told
from trainwright.seams.processes import Exchange, Position, position, unconnected
from trainwright.stages import RankFacts, SetupFacts, Words

# Gradients are looked at a few times without training.
FEW_PASSES = 8
_COMPARED = "compared"


class RankListening:
    """Leaves the script where its training begins. Watchers skip frames of this name.

    Args:
        starter: the process that has started this one and the others.
    """

    def __init__(self, starter: int) -> None:
        self.looks: list[LookResult] = []
        """Of the first process: at what all of them begin with."""
        self.remarks: tuple[str, ...] = ()
        self._exchange = Exchange(starter)
        self._passes = 0

    def training(self, kind: TrainingKind, trainer: Any, frame: FrameType) -> NoReturn:
        """A trainer trains, or a model of Keras's, whose processes share nothing."""
        if kind == TrainingKind.FIT:
            raise ScriptLeft
        self._leave(frame, kind, trainer)

    def on_loop(self, frame: FrameType, *, backward: bool = False) -> None:
        """A loop of the script's trains."""
        self._passes += backward
        if not backward or self._passes >= FEW_PASSES:
            self._leave(frame, TrainingKind.LOOP)

    def on_refusal(self, name: str, function: Any, keywords: Any, error: Exception, frame: FrameType) -> Any:
        """The error reaches the script."""

    def on_failed_call(self, trainer: Any, frame: FrameType) -> None:
        """The error reaches the script."""

    def unsupported(self, why: str) -> None:
        """The run of the first process alone says so."""

    def in_child(self, work: Callable[[], Any]) -> None:
        """The process does its work."""
        work()

    def children_ended(self) -> None:
        """The processes have done their work."""

    def note_failure(self, error: BaseException | None) -> None:
        """The script has ended before its training."""
        here = position()
        if here is not None and here.rank and not isinstance(error, ScriptLeft):
            failure = str(failure_of(error)) if isinstance(error, Exception) else "it ended without training"
            self._put(RankFacts(rank=here.rank, world_size=here.world_size, believed=here.believed, failure=failure))

    def _leave(self, frame: FrameType, kind: TrainingKind, trainer: Any = None) -> NoReturn:
        from trainwright.adapters.process_fingerprint import drawn_loader

        here = position()
        if here is None:
            raise ScriptLeft
        training = kind_of(kind, trainer, frame)
        with unconnected(), silenced():
            own = training.measure_rank(frame, here)
            if here.rank:
                self._put(own)
            else:
                seen().ranks = self._gather(own, here)
                setup = training.measure_early_setup(drawn_loader())
                self.looks = [LookResult(0, {SetupFacts: setup})]
                self.remarks = tuple(remarks(setup.ranks, setup.words))
        raise ScriptLeft

    def _put(self, facts: RankFacts) -> None:
        self._exchange.put(f"rank-{facts.rank}", asdict(facts))

    def _gather(self, own: RankFacts, here: Position) -> tuple[RankFacts, ...]:
        """The facts of all processes on this machine; a process that did not tell in time gets a failure."""
        others = [rank for rank in range(here.here) if rank != own.rank]
        found = self._exchange.gather([f"rank-{rank}" for rank in others])
        self._exchange.clear()
        late = {
            "world_size": own.world_size,
            "believed": own.believed,
            "failure": "it did not reach its training in time",
        }
        return (own, *(RankFacts(**found.get(f"rank-{rank}", {"rank": rank, **late})) for rank in others))


@dataclass(frozen=True, kw_only=True)
class RankNotes:
    """What the first of several processes tells of all of them."""

    looks: list[LookResult] = field(default_factory=list)
    remarks: tuple[str, ...] = ()
    failure: Failure | None = None
    """What it has raised before its training."""


def work_as_rank(work: Callable[[], Any], measure: Callable[[Exception], Any]) -> NoReturn:
    """Do the work of a process that the script has started up to its training, tell what it begins with, and end.

    Args:
        measure: gives the facts of an exception.
    """
    listening, failure = RankListening(os.getppid()), None
    try:
        with told(listening):
            work()
    except ScriptLeft:
        pass
    except Exception as error:  # the script's
        listening.note_failure(error)
        here, failure = position(), failure_of(error)
        if here is None or not here.rank:
            listening.looks = [LookResult(0, measure(error), is_end=True)]
    if listening.looks:
        compared = RankNotes(looks=listening.looks, remarks=listening.remarks, failure=failure)
        said = base64.b64encode(pickle.dumps(compared)).decode()
        Exchange(os.getppid()).put(_COMPARED, {"said": said})
    os._exit(0)  # past the handlers of the script that was copied


def compared_by_children() -> RankNotes | None:
    """What the first of the processes that this one has started has told, if it has."""
    exchange = Exchange(os.getpid())
    if (kept := exchange.get(_COMPARED)) is None:
        return None
    exchange.clear()
    found: RankNotes = pickle.loads(base64.b64decode(kept["said"]))  # by a fork of this process
    return found


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
