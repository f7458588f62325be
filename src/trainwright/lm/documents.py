"""What every source yields, and what filters, deduplication, splitting and tokenizing take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One file of source code."""

    text: str
    path: str
    """Where it came from, as it is shown to people."""
    group: str
    """The repository or package it belongs to: what a split never divides."""
    licence: str | None = None
    """An SPDX identifier, where one is known."""

    @property
    def bytes(self) -> int:
        """Its length in UTF-8."""
        return len(self.text.encode())
