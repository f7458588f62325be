"""The user of a running training: a progress line on a terminal, plain lines elsewhere; Ctrl-C and SIGTERM."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from rich.text import Text

from trainwright_lm.progress import Report, stage


class Live:
    """The progress line, on standard error; silent in all processes but the first."""

    def __init__(self, *, silent: bool = False) -> None:
        self.console = Console(stderr=True, quiet=silent)
        self._report: Report = lambda share, words: None
        self._words = "begins"
        self._started = time.monotonic()
        self._first = self._total = 0

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print(Text(text), soft_wrap=True)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show a spinner during work that takes some seconds, on a terminal only."""
        with self.console.status(text) if self.console.is_terminal else nullcontext():
            yield

    @contextmanager
    def shown(self, done: int, total: int) -> Iterator[None]:
        """Show the progress of updates inside the context."""
        self._started, self._first, self._total = time.monotonic(), done, total
        with stage("train", self.console, begins=done / total) as self._report:
            yield

    def update(self, done: int, loss_nats: float | None = None, tokens_per_second: float | None = None) -> None:
        """Advance the progress line; without a terminal, a loss prints a line instead."""
        if loss_nats is not None and tokens_per_second is not None:
            self._words = f"loss {loss_nats:.4f}  {tokens_per_second:,.0f} tokens/s"
            if not self.console.is_terminal:
                left = (time.monotonic() - self._started) / max(done - self._first, 1) * (self._total - done)
                self.say(f"update {done}/{self._total}  {self._words}  {duration(left)} left")
        self._report(done / self._total, f"{done}/{self._total}  {self._words}")


def duration(seconds: float) -> str:
    """Format as 1:02:03 or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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

    def _came(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
