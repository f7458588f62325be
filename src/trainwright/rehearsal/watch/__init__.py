"""Watchers: what a framework does while a script runs, written into the record."""

from trainwright.rehearsal.record import Record
from trainwright.rehearsal.recorder import Recorder


def watch(recorder: Recorder) -> None:
    """Watch."""


def finish(recorder: Recorder) -> Record:
    """Finish."""
    return recorder.finish()
