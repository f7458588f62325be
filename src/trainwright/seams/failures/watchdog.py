"""An end for whatever the walk runs of the script's: code that does not come back by itself is stopped where it is."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

# Code that swallows the stop (a bare `except:`) is told again after so many seconds.
AGAIN_SECONDS = 1.0


class OutOfTime(BaseException):
    """What the walk was running did not end in time.

    Not an Exception, so that `except Exception` of the user's lets it pass.
    """


@contextlib.contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise OutOfTime inside the context once it has lasted so long.

    In the main thread a timer's signal does so, which ends waits and sleeps too; a timer of the script's own goes on
    afterwards. In other threads, and where there is no such signal, it is raised at the next line of Python that runs.
    """
    with _by_signal(seconds) if _has_signal() else _by_thread(seconds):
        yield


def _has_signal() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    around, _ = signal.getitimer(signal.ITIMER_REAL)
    if around and signal.getsignal(signal.SIGALRM) is _stop and around <= seconds:
        yield  # one of ours around this one comes sooner
        return
    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, _stop)
    left, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
        if left:  # a timer of the script's, or of ours around this one
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
