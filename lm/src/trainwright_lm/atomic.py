"""Atomic file writes: a file is either complete or absent, even if the process or the machine stops, and seen elsewhere."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

PART = ".part"
# NFS keeps the names of a folder for at most a minute (acdirmax, man 5 nfs).
SEEN_WITHIN_SECONDS = 60.0


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces the file's when the block ends; if the block raises, the file is unchanged."""
    part = file.with_name(file.name + PART)
    try:
        with part.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    _settle(file.parent)


def write_json(file: Path, values: Any) -> None:
    """Write values as indented JSON, atomically."""
    with replacing(file) as stream:
        stream.write((json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())


def is_seen(there: Callable[[], bool]) -> bool:
    """Whether something that another machine wrote is there, or soon: network file systems keep what they listed before."""
    until = time.monotonic() + SEEN_WITHIN_SECONDS
    while not (seen := there()) and time.monotonic() < until:
        time.sleep(1)
    return seen


def _settle(folder: Path) -> None:
    """Sync the folder, where the system allows it, so that a rename survives a power loss."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
