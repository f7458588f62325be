"""Puts back what a checked script overwrites or removes before its training: the logs and results of earlier runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Bytes that are copied in all; what is removed is linked, where that can be, and costs nothing.
MOST_BYTES = 1 << 30
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC
# Folders whose files are no results: caches, what Python compiles, devices.
_PASSED_OVER = frozenset({"__pycache__", ".cache", "site-packages", "dist-packages"})

_current: list[EarlierFiles] = []


class EarlierFiles:
    """Keeps files before Python code of this process changes or removes them, and puts them back. Use it as a context."""

    def __init__(self) -> None:
        self._kept: dict[str, Path] = {}
        self._made: set[str] = set()
        """Paths at which there was nothing before: files of the check itself."""
        self._bytes = 0
        self._thread = threading.local()
        self._scratch: str | None = None

    def __enter__(self) -> EarlierFiles:
        _listen()
        _current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.restore()

    def restore(self) -> None:
        """Put all back, and keep nothing more."""
        if self in _current:
            _current.remove(self)
        for path, kept in self._kept.items():
            with contextlib.suppress(OSError):  # a folder that can no longer be written
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(kept, path)
        self._kept.clear()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def note(self, event: str, given: tuple[Any, ...]) -> None:
        """Something is about to happen."""
        looks = _LOOKS.get(event)
        if looks is None or getattr(self._thread, "is_busy", False):
            return
        self._thread.is_busy = True
        try:
            looks(self, given)
        except (
            OSError,
            TypeError,
            ValueError,
        ):  # a path that cannot be read, or is none: the script's own call says so
            return
        finally:
            self._thread.is_busy = False

    def _open(self, given: tuple[Any, ...]) -> None:
        path, _, flags = given
        if isinstance(flags, int) and flags & _WRITES and not isinstance(path, int):
            self._keep(Path(os.fsdecode(path)), links=False)

    def _truncate(self, given: tuple[Any, ...]) -> None:
        if not isinstance(given[0], int):
            self._keep(Path(os.fsdecode(given[0])), links=False)

    def _remove(self, given: tuple[Any, ...]) -> None:
        path, folder = Path(os.fsdecode(given[0])), given[1]
        self._keep(Path(f"/proc/self/fd/{folder}").readlink() / path if folder >= 0 else path, links=True)

    def _rename(self, given: tuple[Any, ...]) -> None:
        for path, folder in ((given[0], given[2]), (given[1], given[3])):
            self._remove((path, folder))

    def _remove_tree(self, given: tuple[Any, ...]) -> None:
        for folder, _, names in os.walk(os.fsdecode(given[0])):
            for name in names:
                self._keep(Path(folder, name), links=True)

    def _keep(self, path: Path, *, links: bool) -> None:
        """Keep a file, unless it is kept or no result.

        Args:
            links: it is removed or replaced, not written to: a second name of it is enough.
        """
        whole = str(path.absolute())
        parts = Path(whole).parts
        if (
            whole in self._kept
            or whole in self._made
            or parts[1:2] in (("dev",), ("proc",), ("sys",))
            or not _PASSED_OVER.isdisjoint(parts)
        ):
            return
        if whole.startswith(tempfile.gettempdir() + os.sep + "trainwright-"):
            return
        try:
            found = os.lstat(whole)
        except FileNotFoundError:
            self._made.add(whole)
            return
        if not stat.S_ISREG(found.st_mode):
            return
        self._scratch = self._scratch or tempfile.mkdtemp(prefix="trainwright-earlier-")
        kept = Path(self._scratch) / str(len(self._kept))
        if links:
            with contextlib.suppress(OSError):  # another file system
                os.link(whole, kept)
        if not kept.exists():
            if self._bytes + found.st_size > MOST_BYTES:
                return
            self._bytes += found.st_size
            shutil.copy2(whole, kept)
        self._kept[whole] = kept


_LOOKS: dict[str, Callable[[EarlierFiles, tuple[Any, ...]], None]] = {
    "open": EarlierFiles._open,
    "os.truncate": EarlierFiles._truncate,
    "os.remove": EarlierFiles._remove,
    "os.rename": EarlierFiles._rename,
    "shutil.rmtree": EarlierFiles._remove_tree,
}
_is_listening: list[bool] = []


def _listen() -> None:
    """Hear of Python's own calls of the system (an audit hook, PEP 578, which cannot be taken away again)."""
    if not _is_listening:
        _is_listening.append(True)
        sys.addaudithook(_hear)


def _hear(event: str, given: tuple[Any, ...]) -> None:
    if _current and event in _LOOKS:
        _current[-1].note(event, given)
