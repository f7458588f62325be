"""A progress line on standard error: fraction done, rate and time left. Only on a terminal. The processors at hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Report = Callable[[float, str], None]
"""Takes the fraction done, 0 to 1, and a few words."""

_STEPS = 10_000
T = TypeVar("T")


@contextmanager
def stage(name: str, console: Console | None = None, *, begins: float = 0.0) -> Iterator[Report]:
    """Show a bar for one stage of the work, from a fraction of it on; it disappears when the stage ends."""
    console = console or Console(stderr=True)
    if not console.is_terminal or console.quiet:
        yield lambda share, words: None
        return
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=_STEPS, completed=round(begins * _STEPS), words="")
        yield lambda share, words: progress.update(task, completed=share * _STEPS, words=words)


def tracked(name: str, items: Sequence[T]) -> Iterator[T]:
    """Yield the items of one stage of the work under its bar."""
    with stage(name) as report:
        for done, item in enumerate(items, start=1):
            yield item
            report(done / len(items), f"{done:,} of {len(items):,}")


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
