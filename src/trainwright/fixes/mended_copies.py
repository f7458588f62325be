"""Copies of a script's files that go past what stops it, so that what lies behind can be run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trainwright.core import Failure
from trainwright.seams.source.going_past import go_past


class MendedCopies:
    """The files' texts in which the lines that stop the script are passed; all lines keep their numbers.

    Args:
        texts: in the place of files from the beginning, by their resolved paths.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self.changes: list[str] = []

    def go_past(self, failure: Failure) -> bool:
        """Change a copy so that the script goes past an exception; returns whether there is one."""
        passed = go_past(failure, self._read)
        if passed is None:
            return False
        self.texts[_key(passed.where.file)] = passed.text
        self.changes.append(passed.said)
        return True

    def _read(self, file: str) -> str | None:
        try:
            return self.texts.get(_key(file)) or Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def _key(file: str) -> str:
    return str(Path(file).resolve())
