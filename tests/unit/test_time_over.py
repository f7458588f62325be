"""How a rehearsal ends a script whose time is over."""

import os
import signal

import pytest

from trainwright.rehearsal.run import TIME_OVER, _raise_out_of_time
from trainwright.seams.failures.watchdog import OutOfTime


class Pool:
    """Is told while it is deleted: a loader whose workers are shut down."""

    def __del__(self) -> None:
        os.kill(os.getpid(), TIME_OVER)
        sum(range(1000))


def delete_one_after_another(rounds: list[int]) -> None:
    while len(rounds) < 100:
        made = Pool()
        del made
        rounds.append(1)


def test_a_signal_within_a_deletion_ends_the_script_behind_it() -> None:
    before = signal.signal(TIME_OVER, _raise_out_of_time)
    rounds: list[int] = []
    try:
        with pytest.raises(OutOfTime):
            delete_one_after_another(rounds)
    finally:
        signal.signal(TIME_OVER, before)
    assert not rounds
