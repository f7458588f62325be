"""Files that are there whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

PART = ".part"


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file's when the block ends; if it raises, the file stays as it was."""
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


def _settle(folder: Path) -> None:
    """Have a renaming survive the machine's sudden end, where a folder can be synchronized."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
