"""Ends a rehearsal before the machine's memory runs out: the check beside it, and everything else, need some too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

# Below this share of the memory, or so many bytes if that is less, the rehearsal is ended.
LEAST_SHARE, LEAST_BYTES = 0.05, 1 << 30
_EVERY_SECONDS = 0.25
_GROUP = Path("/sys/fs/cgroup")


def read_memory() -> tuple[int, int] | None:
    """Bytes that are free to be used, and bytes in all; of the container, where that has less. None: not known."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        of = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        free, total = of["MemAvailable"], of["MemTotal"]
    except (OSError, ValueError, KeyError, IndexError):
        return None
    try:
        limit, used = (int((_GROUP / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or one without a limit
        return free, total
    return min(free, max(0, limit - used)), min(total, limit)


class MemoryGuard:
    """Ends something when memory is short; it looks from `start` to `stop`.

    Args:
        end: ends it; returns whether it was under way.
    """

    def __init__(self, end: Callable[[], bool], read: Callable[[], tuple[int, int] | None] = read_memory) -> None:
        self.is_short = False
        self._end, self._read = end, read
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to look, in a thread."""
        threading.Thread(target=self._look, daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def _look(self) -> None:
        while not self._stopped.wait(_EVERY_SECONDS):
            found = self._read()
            if found is None:
                return
            free, total = found
            if free < min(LEAST_SHARE * total, LEAST_BYTES):
                self.is_short = self._end()
                return
