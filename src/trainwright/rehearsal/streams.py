"""What passes between a script and its terminal: what it prints is shown or hidden, it can type nothing, and it leaves no line open."""

from __future__ import annotations

import builtins
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

# What a terminal does with these is not seen as text: colours, and a line that is erased.
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERASED = "\x1b[2K"


class NeedsTyping(EOFError):
    """The script asks for typed input, which a rehearsal does not have."""


@contextlib.contextmanager
def hiding_output(*, is_shown: bool, ends_lines: bool) -> Iterator[Callable[[], None]]:
    """Send what the script prints nowhere, which the watchers have read before; if it is shown, from the yielded call on."""
    nowhere, *kept = os.open(os.devnull, os.O_WRONLY), os.dup(1), os.dup(2)

    def hide() -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # it may be one of the script's own
                lines.end(stream) if ends_lines and is_shown else None
                stream.flush()
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)

    with watching_lines() as lines:
        hide() if not is_shown else None
        try:
            yield hide
        finally:
            hide()
            for descriptor, before in enumerate(kept, 1):
                os.dup2(before, descriptor)
            for descriptor in (nowhere, *kept):
                os.close(descriptor)


@contextlib.contextmanager
def without_input() -> Iterator[None]:
    """A context in which asking for typed input raises `NeedsTyping`."""

    def refuse(*args: Any) -> str:
        raise NeedsTyping("there is no typed input in a rehearsal")

    before, builtins.input = builtins.input, refuse
    try:
        yield
    finally:
        builtins.input = before


@contextlib.contextmanager
def without_leaving() -> Iterator[None]:
    """What would end this process at once ends the script instead, so that the record is written."""
    own, leave = os.getpid(), os._exit

    def end(status: int) -> NoReturn:
        if os.getpid() == own:
            raise SystemExit(status)
        leave(status)

    os._exit = end
    try:
        yield
    finally:
        os._exit = leave


class OpenLines:
    """The last lines of standard output and error, each by the file that it goes to; a progress bar leaves one open."""

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
    def noted(*given: str) -> int:
        count = write(*given)  # as given: what a stream does not take is no error of ours
        for text in given:
            lines.note(stream, text)
        return count

    return noted
