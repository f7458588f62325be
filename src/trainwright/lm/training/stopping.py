"""Ctrl-C and SIGTERM: the update is finished and saved before the training ends."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Stopping:
    """While it is entered, a first signal is kept for the loop to see; a second one ends the program at once."""

    def __init__(self) -> None:
        self.signal = 0
        """The signal's number; 0: none came."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():  # others may not set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._put_back()

    @property
    def asked(self) -> bool:
        """Whether a signal came."""
        return self.signal != 0

    def _came(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
