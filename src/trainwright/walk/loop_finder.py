"""Finds the loop of a running script that is to be walked: its training, once the step is in sight."""

from __future__ import annotations

import time
from types import CodeType, FrameType

from trainwright.seams.listening.seen import Seen
from trainwright.seams.loops.discarded_training import is_passing
from trainwright.seams.loops.found_loops import Loop, callers
from trainwright.seams.loops.training_loop import is_still_ahead, training_loop

# A rate range test or a warm-up takes some hundred steps; one that takes longer than this is walked after all.
PASSING_SECONDS = 10.0


class LoopFinder:
    """Is asked wherever the script does what a training step does; what was found out is kept."""

    def __init__(self) -> None:
        self._not_yet: dict[tuple[tuple[tuple[CodeType, int], ...], bool], bool] = {}
        """By the way that led to a line: whether it is part of no training step."""
        self._passing: dict[tuple[str, int], float] = {}
        """Until when each loop is let run that trains what is thrown away."""

    def find(self, frame: FrameType, seen: Seen, *, backward: bool) -> Loop | None:
        """The training loop around a frame of the user's; None where there is none, or it is not to be walked yet.

        Args:
            backward: a backward pass was run there, so that one of the loops around trains, whatever its code looks like.
        """
        way = tuple((f.f_code, f.f_lineno) for f in (frame, *callers(frame))), backward
        if self._not_yet.get(way):
            return None
        loop = training_loop(frame, backward=backward)
        if way not in self._not_yet:
            self._not_yet[way] = loop is None or is_still_ahead(loop, frame)
        if loop is None or self._not_yet[way]:
            return None
        return None if self._lets_pass(loop, seen) else loop

    def _lets_pass(self, loop: Loop, seen: Seen) -> bool:
        """Whether a loop is let run, for as long as it may, because what it trains is thrown away."""
        key = (loop.file, loop.line)
        if key not in self._passing:
            passing = is_passing(loop, list(callers(loop.frame)), seen)
            self._passing[key] = time.monotonic() + PASSING_SECONDS if passing else 0.0
        return time.monotonic() < self._passing[key]
