"""Finds the training loop of a running script once it reaches its step."""

from __future__ import annotations

from types import CodeType, FrameType

from trainwright.seams.listening.seen import Seen
from trainwright.seams.loops.discarded_training import is_passing
from trainwright.seams.loops.found_loops import Loop, callers
from trainwright.seams.loops.training_loop import is_still_ahead, training_loop
from trainwright.timing import now

# A rate range test or a warm-up takes some hundred steps; one that takes longer than this is walked after all.
PASSING_SECONDS = 10.0


Way = tuple[tuple[tuple[CodeType, int], ...], bool]
"""The lines that led to a call, and whether it was a backward pass."""


class LoopFinder:
    """Queried at every backward pass and optimizer step of the script; caches its answers."""

    def __init__(self) -> None:
        self._not_yet: dict[Way, bool] = {}
        """By call path: True if the line is not part of a training step."""
        self._passing: dict[tuple[str, int], float] = {}
        """Deadline of each loop whose training is discarded and that is therefore left to run."""
        self._without_loop: set[Way] = set()
        self.passes_without_loop = 0
        """Backward passes around which there is no loop that can be walked."""

    def find(self, frame: FrameType, seen: Seen, *, backward: bool) -> Loop | None:
        """The training loop around a user's frame; None if there is none, or if it must not be walked yet.

        Args:
            backward: a backward pass ran there, so one of the surrounding loops trains, whatever its code looks like.
        """
        way = tuple((f.f_code, f.f_lineno) for f in (frame, *callers(frame))), backward
        self.passes_without_loop += way in self._without_loop
        if self._not_yet.get(way):
            return None
        loop = training_loop(frame, backward=backward)
        if loop is None and backward:
            self._without_loop.add(way)
        if way not in self._not_yet:
            self._not_yet[way] = loop is None or is_still_ahead(loop, frame)
        if loop is None or self._not_yet[way]:
            return None
        return None if self._lets_pass(loop, seen) else loop

    def _lets_pass(self, loop: Loop, seen: Seen) -> bool:
        """Whether a loop is left to run (up to its deadline) because its training is discarded."""
        key = (loop.file, loop.line)
        if key not in self._passing:
            passing = is_passing(loop, list(callers(loop.frame)), seen)
            self._passing[key] = now() + PASSING_SECONDS if passing else 0.0
        return now() < self._passing[key]
