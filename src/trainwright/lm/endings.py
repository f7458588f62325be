"""Where a completion ends: at the end of its line, or of the statement that the prompt began; before it repeats itself."""

from __future__ import annotations

import re
from collections.abc import Callable

Ending = Callable[[bytes], int | None]
"""Takes all bytes written so far; gives how many of them belong to the completion, None while it goes on."""

# What may hold brackets or line ends that are none, each also where the text breaks off inside of it.
_STRING = rb'"""(?:\\(?:.|\Z)|[^\\])*?(?:"""|\Z)|' + rb"'''(?:\\(?:.|\Z)|[^\\])*?(?:'''|\Z)|"
_STRING += rb'"(?:\\(?:.|\Z)|[^"\\\n])*"?|' + rb"'(?:\\(?:.|\Z)|[^'\\\n])*'?"
_PIECE = re.compile(_STRING + rb"|\#[^\n]*|\\\r?\n|[(\[{]|[)\]}]|\n", re.DOTALL)


# The likeliest token each time brings small models to say the same thing over and over (Holtzman and others, arXiv
# 1904.09751): so many bytes at most, so many times running. Rules of signs alone (`# -----`) are none.
_LONGEST_REPEATED = 48
_TIMES = 4
# Signs that what is repeated begins with, where it has one: `, "b"` of `"a", "b", "b"`.
_BEGINNINGS = b",.;:([{+-*/|&"


def line_end(written: bytes) -> int | None:
    """The first line end after something that is not blank, which itself is left out; or where it repeats itself."""
    first = re.search(rb"\S", written)
    end = _before_newline(written, written.find(b"\n", first.end())) if first else None
    return repetition(written) if end is None else end


def repetition(written: bytes) -> int | None:
    """Where a text that ends with the same thing four times over has said it once; None if it does not end so."""
    for size in range(2, min(_LONGEST_REPEATED, len(written) // _TIMES) + 1):
        unit = written[-size:]
        if written.endswith(unit * _TIMES) and b"\n" not in unit and re.search(rb"\w", unit):
            start = len(written) - size * _TIMES
            while start and written[start - 1] == written[start - 1 + size]:
                start -= 1
            turns = (start + i for i in range(size) if written[start + i] in _BEGINNINGS)
            return next(turns, start) + size
    return None


def statement_end(prompt: str) -> Ending:
    """An ending at the first line end, after something not blank, that ends a logical line of Python.

    Brackets are counted from the prompt's first character on; a line end inside of brackets or of a
    triple-quoted string, or after a backslash, ends nothing. Of a compound statement this is the header.
    """
    before = prompt.encode(errors="replace")

    def end(written: bytes) -> int | None:
        if (repeated := repetition(written)) is not None:
            return repeated
        # Nothing ends but at a line's end, and most completions have one: the prompt is read once or twice.
        if line_end(written) is None:
            return None
        depth = 0
        for piece in _PIECE.finditer(before + written):
            found = piece.group()
            if found in (b"(", b"[", b"{"):
                depth += 1
            elif found in (b")", b"]", b"}"):
                depth = max(0, depth - 1)
            elif found == b"\n" and depth == 0:
                at = piece.start() - len(before)
                if at >= 0 and written[:at].strip():
                    return _before_newline(written, at)
        return None

    return end


def _before_newline(written: bytes, at: int) -> int | None:
    """The length without the line end at that place, of one or two bytes; None if there is none."""
    if at < 0:
        return None
    return at - 1 if written[:at].endswith(b"\r") else at
