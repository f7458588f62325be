"""Error messages that no rule quotes, or that deserve a paragraph of their own: texts, meanings and related rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainwright.core.quotations import fixed_length, flat, quoted_in
from trainwright.frameworks.messages.known import KnownMessage, read_entries

# What the exact type of an exception counts, in characters of fixed text.
TYPE_COUNTS = 10
# A longer message is read up to here.
LONGEST = 20_000


@cache
def load_messages() -> tuple[KnownMessage, ...]:
    """The entries of all files of this folder; they are read when a message is first looked up."""
    files = sorted(Path(__file__).parent.glob("*.md"))
    return tuple(known for file in files for known in read_entries(file.name, file.read_text("utf-8")))


@dataclass(frozen=True, kw_only=True)
class Match:
    """An entry that quotes a message, and how specifically: fixed characters, and more for the exact type."""

    known: KnownMessage
    text: str
    """The wording that was found."""
    score: int


def best(type_name: str, message: str) -> Match | None:
    """The entry that quotes an exception most specifically, if any does.

    Args:
        type_name: the exception's type, with or without its module; empty if unknown.
        message: its text, or a whole line such as "ValueError: …".
    """
    found = matches(type_name, message)
    return found[0] if found else None


def matches(type_name: str, message: str) -> list[Match]:
    """All entries that quote an exception, the most specific first; those that only pass on another error come last."""
    name = type_name.rpartition(".")[2]
    said = flat(f"{name}: {message[:LONGEST]}" if name else message[:LONGEST])
    found = []
    for known in load_messages():
        text = max((q for q in known.texts if quoted_in(q, said)), key=fixed_length, default="")
        same = bool(name) and known.type == name
        if text and (same or not name or not known.type):
            found.append(Match(known=known, text=text, score=fixed_length(text) + TYPE_COUNTS * same))
    return sorted(found, key=lambda match: (match.known.wraps, -match.score))
