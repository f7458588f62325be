"""What passes between a script and its terminal: what it prints is shown to nobody, and nobody types."""

from __future__ import annotations

import builtins
import contextlib
import os
import re
import threading
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from trainwright.core.secrets import without_secrets
from trainwright.seams.listening.doors import replaced

# What a terminal does not show as text: sequences that move, colour and name, and other control characters but ends of lines.
_CONTROLS = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])|[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
# Bytes that are read at once, and the last ones that are kept; characters of the line that is shown.
_AT_ONCE, MOST_KEPT, _MOST_SHOWN = 1 << 16, 4000, 300
_LAST_SECONDS = 1.0
_USUAL_SIZE = 80, 24


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
        """The last line with something on it, without what looks like a secret; wait for the process's end before."""
        self._thread.join(_LAST_SECONDS)  # what the script has started may hold the pipe open
        lines = re.split(r"[\r\n]+", _CONTROLS.sub(" ", self._kept.decode("utf-8", "replace")))
        last = next((line for line in reversed(lines) if line.strip()), "")
        return " ".join(without_secrets(last.split()))[:_MOST_SHOWN]

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while read := os.read(pipe.fileno(), _AT_ONCE):
                self._kept = (self._kept + read)[-MOST_KEPT:]


@contextlib.contextmanager
def without_terminal() -> Iterator[None]:
    """A context in which asking for typed input raises `NeedsTyping`, and a terminal that is not there has a usual size."""

    def refuse(*args: Any) -> str:
        raise NeedsTyping("there is no typed input in a rehearsal")

    def measure(*args: int) -> os.terminal_size:
        try:
            return size_of(*args)
        except OSError:
            return os.terminal_size(_USUAL_SIZE)

    size_of = os.get_terminal_size
    with replaced([(builtins, "input", refuse), (os, "get_terminal_size", measure)]):
        yield


@contextlib.contextmanager
def without_leaving() -> Iterator[None]:
    """What would end this process at once ends the script instead, so that the record is written."""
    own, leave = os.getpid(), os._exit

    def end(status: int) -> NoReturn:
        if os.getpid() == own:
            raise SystemExit(status)
        leave(status)

    with replaced([(os, "_exit", end)]):
        yield
