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
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

Number = float | None


class Live:
    """The progress line, on standard error; silent in all processes but the first."""

    def __init__(self, *, silent: bool = False) -> None:
        self.console = Console(stderr=True, quiet=silent)
        self._progress: Progress | None = None
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
        if not self.console.is_terminal or self.console.quiet:
            yield
            return
        columns = (BarColumn(), TextColumn("{task.completed}/{task.total}  {task.description}"))
        with Progress(*columns, console=self.console, transient=True) as self._progress:
            self._progress.add_task("begins", total=total, completed=done)
            yield
        self._progress = None

    def update(self, done: int, loss_nats: Number = None, tokens_per_second: Number = None) -> None:
        """Advance the progress line; without a terminal, a loss prints a line instead."""
        left = (time.monotonic() - self._started) / max(done - self._first, 1) * (self._total - done)
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=done)
        if loss_nats is None or tokens_per_second is None:
            return
        text = f"loss {loss_nats:.4f}  {tokens_per_second:,.0f} tokens/s  {duration(left)} left"
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], description=text)
        else:
            self.say(f"update {done}/{self._total}  {text}")


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
