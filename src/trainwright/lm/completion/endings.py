"""Where a completion ends: at the end of its line, or of the statement that the prompt began; before it repeats itself."""

from __future__ import annotations

import re
from collections.abc import Callable

Ending = Callable[[bytes], int | None]
"""Takes all bytes written so far; returns how many of them belong to the completion, None while it continues."""

# What may hold brackets or line ends that are none, each also where the text breaks off inside of it.
_STRING = rb'"""(?:\\(?:.|\Z)|[^\\])*?(?:"""|\Z)|' + rb"'''(?:\\(?:.|\Z)|[^\\])*?(?:'''|\Z)|"
_STRING += rb'"(?:\\(?:.|\Z)|[^"\\\n])*"?|' + rb"'(?:\\(?:.|\Z)|[^'\\\n])*'?"
_PIECE = re.compile(_STRING + rb"|\#[^\n]*|\\\r?\n|[(\[{]|[)\]}]|\n", re.DOTALL)


# The likeliest token each time brings small models to say the same thing over and over (Holtzman and others, arXiv
# 1904.09751): so many bytes at most, so many times running. What is repeated has letters and signs: numbers and rules
# (`0, 0, 0`, `1000000`, `# -----`, `____`) are written like that, and `None, None, None` no more than five times.
_LONGEST_REPEATED = 48
_TIMES = 6
_WORDS_AND_SIGNS = re.compile(rb"(?=.*[A-Za-z])(?=.*\W).+")
# Signs that what is repeated begins with, where it has one: `, "b"` of `"a", "b", "b"`; the first ones before the others.
_BEGINNINGS = (b",;:([{+-*/|&", b".")


def line_end(written: bytes) -> int | None:
    """The first line end after something that is not blank, which itself is left out; or where it repeats itself."""
    first = re.search(rb"\S", written)
    end = _before_newline(written, written.find(b"\n", first.end())) if first else None
    return end if end is not None else repetition(written)


def repetition(written: bytes) -> int | None:
    """The end of the first copy in a text that ends with six copies of the same thing; None if it does not."""
    for size in range(2, min(_LONGEST_REPEATED, len(written) // _TIMES) + 1):
        unit = written[-size:]
        if written.endswith(unit * _TIMES) and _WORDS_AND_SIGNS.fullmatch(unit):
            start = len(written) - size * _TIMES
            while start and written[start - 1] == written[start - 1 + size]:
                start -= 1
            places = range(start, start + size)
            turns = (place for signs in _BEGINNINGS for place in places if written[place] in signs)
            return next(turns, start) + size
    return None


def statement_end(prompt: str) -> Ending:
    """An ending at the first line end, after something not blank, that ends a logical line of Python.

    Brackets are counted from the prompt's first character on; a line end inside of brackets or of a
    triple-quoted string, or after a backslash, ends nothing. Of a compound statement this is the header.
    """
    before = prompt.encode(errors="replace")

    def end(written: bytes) -> int | None:
        # Nothing else ends but at a line's end.
        if b"\n" not in written:
            return repetition(written)
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
        return repetition(written)

    return end


def _before_newline(written: bytes, at: int) -> int | None:
    """The length without the line end at that place, of one or two bytes; None if there is none."""
    if at < 0:
        return None
    return at - 1 if written[:at].endswith(b"\r") else at
