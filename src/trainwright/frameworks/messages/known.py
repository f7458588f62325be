"""An entry of the table of error messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KnownMessage:
    """A message that people get, and what to do about it."""

    texts: tuple[str, ...]
    """Its wordings, from one version to the next, or for sibling cases; `…` stands for any text."""
    meaning: str
    """What it means, its causes with the most frequent first, where to look and what to change: one paragraph."""
    rules: tuple[str, ...] = ()
    """Names of rules that look for such a fault."""
    type: str = ""
    """The exception's type, if the text alone would match too much."""
    wraps: bool = False
    """It only passes on another error, whose entry comes first."""

    @property
    def paragraph(self) -> str:
        """The meaning on one line."""
        return " ".join(self.meaning.split())
