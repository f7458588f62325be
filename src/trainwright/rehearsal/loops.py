"""Ends a plain training loop of the script once its time is over, so that the script goes on behind it."""

from __future__ import annotations

import sys

from trainwright.rehearsal.recorder import Recorder
from trainwright.seams.listening.seen import Seen
from trainwright.seams.loops.found_loops import callers
from trainwright.seams.loops.shortened_loop import ShortenedLoop, can_shorten
from trainwright.seams.loops.training_loop import training_loop
from trainwright.seams.loops.trainings_behind import loops_of_training
from trainwright.seams.source.places import user_frame


class LoopEnding:
    """Called after each update. Nothing is done to the loop before its time is over."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loop: ShortenedLoop | None = None

    def __call__(self) -> None:
        self._recorder.guard(self._end_if_over)

    def _end_if_over(self) -> None:
        training = self._recorder.training
        if training is None or training.kind != "loop" or not self._recorder.is_over():
            return
        training.is_cut = True
        if self._loop is not None and self._loop.runs:
            return
        frame = user_frame(sys._getframe(1))
        loop = training_loop(frame, backward=True) if frame is not None else None
        if loop is None:
            return
        loops = loops_of_training(loop, list(callers(loop.frame)), Seen())
        if can_shorten(loops):
            self._loop = ShortenedLoop(loops, 0.0, self._recorder.end_training)
            self._loop.begin()
            self._recorder.is_emptied = True
