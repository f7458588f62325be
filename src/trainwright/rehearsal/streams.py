"""What passes between a script and its terminal: what it prints is shown to nobody, and nobody types."""

from __future__ import annotations

import builtins
import contextlib
import os
import re
import threading
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from trainwright.core.quotations import plain

# Bytes that are read at once, and the last ones that are kept; characters of the line that is shown.
_AT_ONCE, MOST_KEPT, _MOST_SHOWN = 1 << 16, 4000, 300
_LAST_SECONDS = 1.0


class NeedsTyping(EOFError):
    """The script asks for typed input, which a rehearsal does not have."""


class LastLine:
    """Reads what a process prints, which is shown to nobody, to its end; keeps the last line.

    Args:
        pipe: what it prints into.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._kept = b""
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def find(self) -> str:
        """The last line with something on it; wait for the process's end before."""
        self._thread.join(_LAST_SECONDS)  # what the script has started may hold the pipe open
        lines = re.split(r"[\r\n]+", plain(self._kept.decode("utf-8", "replace")))
        return next((line.strip()[:_MOST_SHOWN] for line in reversed(lines) if line.strip()), "")

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while read := os.read(pipe.fileno(), _AT_ONCE):
                self._kept = (self._kept + read)[-MOST_KEPT:]


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
