"""Where a completion ends: at the end of the line or of the statement that the prompt began, or where it repeats."""

from __future__ import annotations

import re
from collections.abc import Callable

Ending = Callable[[bytes], int | None]
"""Takes all bytes written so far and returns how many belong to the completion, or None while it continues."""

# Strings, comments and continued lines may contain brackets or line ends that do not count; they may also be cut off.
_STRING = rb'"""(?:\\(?:.|\Z)|[^\\])*?(?:"""|\Z)|' + rb"'''(?:\\(?:.|\Z)|[^\\])*?(?:'''|\Z)|"
_STRING += rb'"(?:\\(?:.|\Z)|[^"\\\n])*"?|' + rb"'(?:\\(?:.|\Z)|[^'\\\n])*'?"
_PIECE = re.compile(_STRING + rb"|\#[^\n]*|\\\r?\n|[(\[{]|[)\]}]|\n", re.DOTALL)


# Greedy decoding makes small models repeat themselves (Holtzman and others, arXiv 1904.09751). A repeated unit has at
# most this many bytes and occurs this many times in a row. It must contain a letter and a sign: numbers and rules
# (`0, 0, 0`, `1000000`, `# -----`, `____`) are legitimate up to the length of a line, and `None, None, None` occurs at
# most five times.
_LONGEST_REPEATED = 48
_TIMES = 6
_LONGEST_RULE = 160
_WORDS_AND_SIGNS = re.compile(rb"(?=.*[A-Za-z])(?=.*\W).+", re.DOTALL)
# Signs that start the repeated unit if it has one: `, "b"` in `"a", "b", "b"`; the first group takes precedence.
_BEGINNINGS = (b",;:([{+-*/|&", b".")


def line_end(written: bytes) -> int | None:
    """The first line end after a nonblank character (not included), or the point where the text begins to repeat."""
    first = re.search(rb"\S", written)
    end = _before_newline(written, written.find(b"\n", first.end())) if first else None
    return end if end is not None else repetition(written)


def repetition(written: bytes) -> int | None:
    """The end of the first copy if the text ends with six copies of a unit, or with an endless rule; otherwise None."""
    for size in range(2, min(_LONGEST_REPEATED, len(written) // _TIMES) + 1):
        unit = written[-size:]
        words = _WORDS_AND_SIGNS.fullmatch(unit)
        times = _TIMES if words else _LONGEST_RULE // size + 1
        if written.endswith(unit * times) and (words or b"\n" not in unit):
            start = len(written) - size * times
            while start and written[start - 1] == written[start - 1 + size]:
                start -= 1
            places = range(start, start + size)
            turns = (place for signs in _BEGINNINGS for place in places if written[place] in signs)
            return next(turns, start) + size
    return None


def statement_end(prompt: str) -> Ending:
    """An ending at the first line end, after a nonblank character, that ends a logical line of Python.

    Brackets are counted from the prompt's first character. A line end inside brackets or a triple-quoted string, or
    after a backslash, does not end the line. For a compound statement, the header is the logical line.
    """
    before = prompt.encode(errors="replace")

    def end(written: bytes) -> int | None:
        # Only a line end can end a statement.
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
    """The length without the line end (one or two bytes) at that position; None if there is none."""
    if at < 0:
        return None
    return at - 1 if written[:at].endswith(b"\r") else at
