"""Ctrl-C and SIGTERM: finish and save the current update before the training ends."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Stopping:
    """A context in which a first signal is stored for the loop to check; a second one ends the program at once."""

    def __init__(self) -> None:
        self.signal = 0
        """The signal's number; 0: none so far."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():  # only the main thread may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._put_back()
        if error is not None and self._before and "TORCHELASTIC_RUN_ID" in os.environ:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends the others, too; first this one says why

    @property
    def asked(self) -> bool:
        """Whether a signal arrived."""
        return self.signal != 0

    def _came(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
