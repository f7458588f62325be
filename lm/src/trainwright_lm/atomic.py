"""Files: written whole or not at all, even if the process or the machine stops; seen elsewhere; read, summed, locked."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from trainwright.errors import ReadError

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
    to_disk(file.parent)


def write_json(file: Path, values: Any) -> None:
    """Write values as indented JSON, atomically."""
    with replacing(file) as stream:
        stream.write((json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(file: Path, what: str = "") -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ReadError: if it cannot be read; it begins with `what`, or with the file's name.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReadError(f"{what or f'{file} must be readable JSON'}: {error}.") from error
    if not isinstance(value, dict):
        raise ReadError(f"{file} must contain a JSON object; got {type(value).__name__}.")
    return value


def checksum(*files: Path) -> str:
    """The XXH3 hash, of 128 bits, of the files one after the other."""
    import xxhash  # of the lm extra, which may be missing where this module is imported

    digest = xxhash.xxh3_128()
    for file in files:
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a folder, or a file that is made for it, alone; the lock ends with the process. Windows has none of these.

    Raises:
        BlockingIOError: if another process holds it and `wait` is false.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)


def to_disk(path: Path) -> None:
    """Flush a file or folder; until both a file and its folder are flushed, a power loss may destroy either."""
    if sys.platform == "win32" and path.is_dir():  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_seen(there: Callable[[], bool]) -> bool:
    """Whether something that another machine wrote is there, or soon: network file systems keep what they listed before."""
    until = time.monotonic() + SEEN_WITHIN_SECONDS
    while not (seen := there()) and time.monotonic() < until:
        time.sleep(1)
    return seen
