"""The document: yielded by every source, and the input of filters, deduplication, splitting and tokenizing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One file of source code."""

    text: str
    path: str
    """Its origin, as shown to users."""
    group: str
    """The repository or package that it belongs to, which a split never divides."""
    licence: str | None = None
    """An SPDX identifier, if one is known."""

    @property
    def bytes(self) -> int:
        """Its length in UTF-8."""
        return len(self.text.encode())
