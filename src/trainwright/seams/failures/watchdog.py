"""A time limit for script code run by the check: code that does not return is interrupted."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from trainwright.timing import watchdog_seconds

# Code that swallows the interruption (a bare `except:`) is interrupted again after this many seconds.
AGAIN_SECONDS = 1.0


class OutOfTime(BaseException):
    """Code run by the check did not finish in time.

    Not an Exception, so that the user's `except Exception` does not catch it.
    """


class NoMoreBatches(StopIteration):
    """A loader gives no more batches, since the training's time is over; ends a script that asks for one by `next`."""


@contextlib.contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside the context after this many seconds.

    In the main thread, a timer signal raises it, which also interrupts waits and sleeps; the script's own timer
    continues afterwards. In other threads, and on systems without such a signal, it is raised at the next line of
    Python that runs.
    """
    seconds = watchdog_seconds(seconds)
    has_signal = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    with _by_signal(seconds) if has_signal else _by_thread(seconds):
        yield


@contextlib.contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    around, _ = signal.getitimer(signal.ITIMER_REAL)
    if around and signal.getsignal(signal.SIGALRM) is _stop and around <= seconds:
        yield  # one of our outer timers expires sooner
        return
    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, _stop)
    left, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
        if left:  # the script's timer, or one of our outer ones
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)), interval)


def _stop(number: int, frame: FrameType | None) -> None:
    raise OutOfTime


@contextlib.contextmanager
def _by_thread(seconds: float) -> Iterator[None]:
    thread, ended = threading.get_ident(), threading.Event()
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def watch() -> None:
        wait = seconds
        while not ended.wait(wait):
            raise_in(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))
            wait = AGAIN_SECONDS

    watcher = threading.Thread(target=watch, name="trainwright-watchdog", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        raise_in(ctypes.c_ulong(thread), None)
