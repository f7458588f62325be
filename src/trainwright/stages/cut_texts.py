"""What truncation leaves of the texts that token rows were made from."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Place


@dataclass(frozen=True, kw_only=True)
class CutTexts:
    """What is left of texts in the script's scope in the token rows that were made from them, one for each."""

    expression: str
    """The script's expression for the texts."""
    rows: int
    compared: int
    cut: int
    """How many of the compared rows lack some of their text."""
    lost_share: float
    """The share of these texts' tokens that no row has."""
    longest: int
    """The most tokens of a compared row."""
    pieces: int
    """How many such rows all tokens would fill, roughly."""
    where: Place | None
    """The script's line that asks for truncation."""
