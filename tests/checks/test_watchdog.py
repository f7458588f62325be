"""What a check runs of a script ends, even where the script's code does not."""

import contextlib
import signal
import threading
import time

import pytest

from trainwright.seams.failures.watchdog import OutOfTime, stopped_after

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]


def _spin() -> None:
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def test_code_that_does_not_come_back_is_stopped() -> None:
    with pytest.raises(OutOfTime), stopped_after(0.2):
        _spin()


def test_in_another_thread_it_is_stopped_as_well() -> None:
    ended = []

    def work() -> None:
        try:
            with stopped_after(0.2):
                _spin()
        except OutOfTime:
            ended.append(True)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert ended


def test_the_scripts_own_timer_goes_on() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 1000.0)
    try:
        with stopped_after(500.0):
            pass
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        assert 500 < left <= 1000
        signal.raise_signal(signal.SIGALRM)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_of_two_limits_the_one_that_comes_sooner_holds() -> None:
    with pytest.raises(OutOfTime), stopped_after(0.2), stopped_after(30.0):
        _spin()
    with stopped_after(30.0):
        with pytest.raises(OutOfTime), stopped_after(0.2):
            _spin()
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        assert 0 < left < 30.0
