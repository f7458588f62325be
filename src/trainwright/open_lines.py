"""Whether what a script wrote last ends in the middle of a line, as a progress bar does; a report begins on a new one."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

# What a terminal does with these is not seen as text: colours, and a line that is erased.
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERASED = "\x1b[2K"


class OpenLines:
    """The last lines of standard output and error, each by the file that it goes to."""

    def __init__(self) -> None:
        self._ends: dict[object, str] = {}

    def note(self, stream: Any, text: str) -> None:
        """Text was written to a stream."""
        of = _file_of(stream)
        self._ends[of] = (self._ends.get(of, "") + text).rpartition("\n")[2].rpartition(_ERASED)[2][-500:]

    def is_open(self, stream: Any) -> bool:
        """Whether something stands in the line where the stream's next text goes."""
        written = _CODES.sub("", self._ends.get(_file_of(stream), "")).split("\r")
        # A carriage return goes back to the line's beginning; what is written there, were it blanks, takes the place.
        return bool((written[-1] or written[-2 if len(written) > 1 else -1]).strip())

    def end(self, stream: Any) -> None:
        """End such a line."""
        if self.is_open(stream):
            stream.write("\n")


def _file_of(stream: Any) -> object:
    """What tells the files behind streams apart: two streams into one have one line."""
    try:
        found = os.fstat(stream.fileno())
    except (AttributeError, OSError, ValueError):  # a stream without a file
        return id(stream)
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def watching_lines() -> Iterator[OpenLines]:
    """Note what is written to standard output and error; the streams remain what they are."""
    lines = OpenLines()
    watched: list[tuple[Any, Callable[[str], int], Any]] = []
    streams: list[Any] = [sys.stdout, sys.stderr]
    for stream in {id(one): one for one in streams}.values():
        try:
            own, noting = vars(stream).get("write"), _noting(lines, stream, stream.write)
            stream.write = noting
            watched.append((stream, noting, own))
        except AttributeError:  # it takes none, or there is no stream
            continue
    try:
        yield lines
    finally:
        for stream, noting, own in watched:
            if vars(stream).get("write") is not noting:  # the script has put its own in the place
                continue
            if own is None:
                del stream.write
            else:
                stream.write = own


def _noting(lines: OpenLines, stream: Any, write: Callable[[str], int]) -> Callable[[str], int]:
    def noted(text: str) -> int:
        count = write(text)
        if isinstance(text, str):
            lines.note(stream, text)
        return count

    return noted
