"""Quoted texts in a message: found by reading it from its beginning, so that what stands between two of them is not one."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Quoted texts of at least so many characters may be data.
SHORTEST = 25
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}
# Letters that Python writes before a text.
_PREFIX = re.compile(r"(?<![\w\"'])[fFrRbBuU]{1,2}$")
# A triple quotation mark is Python's.
_TRIPLE = 3


def without_quoted(text: str) -> str:
    """The text, with the length of each longer quoted text in its place."""
    return "".join(
        f"{opening}<text of {len(inner)} characters>{closing}" if opening and len(inner) >= SHORTEST else whole
        for whole, opening, inner, closing in _parts(text)
    )


def _parts(text: str) -> Iterator[tuple[str, str, str, str]]:
    """The text in pieces: each as it is, and for a quoted one its opening mark, what is inside, and its closing mark."""
    at = plain = 0
    while at < len(text):
        end = _end(text, at) if _opens(text, at) else None
        if end is None:
            at += 1
            continue
        yield text[plain:at], "", "", ""
        size = len(_mark(text, at))
        first, last = at + size, end - size if end > at else len(text)
        plain = at = max(end, first) if end > at else len(text)
        yield text[first - size : plain], text[first - size : first], text[first:last], text[last:plain]
    yield text[plain:], "", "", ""


def _mark(text: str, at: int) -> str:
    one = text[at]
    return one * _TRIPLE if one in "\"'" and text.startswith(one * _TRIPLE, at) else one


def _opens(text: str, at: int) -> bool:
    """Whether a quoted text begins here: a mark behind a letter or a digit closes one, or is an apostrophe."""
    if _PREFIX.search(text[max(0, at - 3) : at]) and text[at] in "\"'":
        return True
    before = text[at - 1] if at else " "
    if text[at] not in _CLOSING:
        return False
    return not (before.isalnum() or before in "_\\") or text[at] in "“«"


def _end(text: str, at: int) -> int | None:
    """Where the quoted text that begins here ends, behind its mark; `at` itself if no mark closes it; None: it is no text."""
    mark = _mark(text, at)
    closing = mark if len(mark) == _TRIPLE else _CLOSING[mark]
    place = at + len(mark)
    while place < len(text):
        if text[place] == "\\":
            place += 2
            continue
        if text.startswith(closing, place) and _closes(text, place, closing):
            return place + len(closing)
        place += 1
    return None if mark in ("'", "‘") else at


def _closes(text: str, place: int, closing: str) -> bool:
    """Whether a mark closes a text: before a letter, a single one is an apostrophe."""
    behind = text[place + len(closing) : place + len(closing) + 1]
    return closing not in ("'", "’") or not behind.isalnum()
