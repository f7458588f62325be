"""A kind of complaint or question in words, and its answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Complaint:
    """One kind of complaint."""

    patterns: tuple[str, ...]
    """Regular expressions for the text as `_plain` writes it; the first complaint with one that is found answers."""
    answer: str
    rules: tuple[str, ...]
    """Names of rules, the most frequent cause first."""
