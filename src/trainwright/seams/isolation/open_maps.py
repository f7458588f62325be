"""Files mapped into memory for writing: the walk's changes stay private and never reach the files."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw.([sp]) ([0-9a-f]+) \S+ \d+ +(/.*)$")
_NO_FILES = ("/dev/", "/memfd:", "/SYSV", "/proc/")
_FIXED, _FAILED = 0x10, ctypes.c_void_p(-1).value


@dataclass(frozen=True, kw_only=True)
class _Map:
    start: int
    end: int
    offset: int
    file: str


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Make writable file maps copy-on-write (MAP_PRIVATE), and shared again at the end."""
    changed = [m for m in _maps("s") if _map_again(m, mmap.MAP_PRIVATE)]
    try:
        yield
    finally:
        now = _maps("p") if changed else []
        for one in changed:
            # The addresses of maps that were unmapped meanwhile may be reused.
            if any(m.file == one.file and m.start <= one.start and one.end <= m.end for m in now):
                _map_again(one, mmap.MAP_SHARED)


def _maps(kind: str) -> list[_Map]:
    """The writable file maps: s for shared, p for private."""
    if not sys.platform.startswith("linux"):
        return []
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
        return [
            _Map(start=int(found[1], 16), end=int(found[2], 16), offset=int(found[4], 16), file=found[5])
            for line in lines
            if (found := _LINE.match(line.rstrip("\n")))
            and found[3] == kind
            and not found[5].startswith(_NO_FILES)
            and not found[5].endswith("(deleted)")
        ]
    return []


def _map_again(one: _Map, sharing: int) -> bool:
    """Remap a file at its current address, shared or private; returns whether that succeeded."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    try:
        number = os.open(one.file, os.O_RDWR)
    except OSError:
        return False
    try:
        placed = library.mmap(
            one.start, one.end - one.start, mmap.PROT_READ | mmap.PROT_WRITE, sharing | _FIXED, number, one.offset
        )
        return bool(placed != _FAILED)
    finally:
        os.close(number)
