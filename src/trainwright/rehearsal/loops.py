"""Ends a plain training loop of the script once its time is over, so that the script goes on behind it."""

from __future__ import annotations

import sys

from trainwright.rehearsal.recorder import Recorder
from trainwright.seams.loops.shortened_loop import ShortenedLoop, can_shorten, loops_of_training
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
        if training is None or not training.is_loop or not self._recorder.is_over():
            return
        if self._loop is not None and self._loop.runs:
            return
        frame = user_frame(sys._getframe(1))
        loops = loops_of_training(frame) if frame is not None else []
        if loops and can_shorten(loops):
            self._loop = ShortenedLoop(loops, self._note_cut, self._recorder.end_training)
            self._loop.begin()

    def _note_cut(self) -> None:
        if (training := self._recorder.training) is not None:
            training.is_cut = self._recorder.is_emptied = True
