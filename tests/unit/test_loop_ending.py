"""A training's loop is ended where its time is over, and a training is called cut where that could be done."""

from collections.abc import Callable

import pytest

from trainwright.rehearsal.loops import LoopEnding
from trainwright.rehearsal.record import Training
from trainwright.rehearsal.recorder import Recorder


def _end_with_it(recorder: Recorder) -> None:
    for _ in range(6):
        recorder.end_update()


def _go_on_behind_it(recorder: Recorder) -> None:
    for _ in range(6):
        recorder.end_update()
    recorder.add_number("accuracy", 0.5, "printed")


@pytest.mark.parametrize(("train", "updates", "is_cut"), [(_end_with_it, 6, False), (_go_on_behind_it, 3, True)])
def test_a_loop_that_cannot_be_left_runs_on_and_is_not_cut(
    train: Callable[[Recorder], None], updates: int, is_cut: bool
) -> None:
    """There is nothing behind the last statement of a function to go on at."""
    recorder = Recorder()
    recorder.is_over = lambda: recorder.record.updates >= 3
    recorder.on_update.append(LoopEnding(recorder))
    recorder.begin_training(training := Training(number=1, kind="loop", begins=0))
    train(recorder)
    assert (recorder.record.updates, training.is_cut) == (updates, is_cut)
    assert not recorder.is_emptied
