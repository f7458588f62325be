"""The document: what sources yield, and what filters, deduplication, splitting and tokenizing take as input."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One file of source code."""

    text: str
    path: str
    """Its origin, as shown to users."""
    group: str
    """Its repository or package, which a split never divides."""
    licence: str | None = None
    """An SPDX identifier, if one is known."""

    @property
    def bytes(self) -> int:
        """Its length in UTF-8."""
        return len(self.text.encode())
