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


# Greedy decoding makes small models repeat themselves (Holtzman and others, arXiv 1904.09751). How often a unit must
# occur in a row to be an endless repetition depends on what it is made of, because true code repeats some units, too
# (`0, 0, 0`, `# -----`, `None, None, None`, `0x7fffffff`). Of a million lines of installed packages, the rule cuts 59,
# nearly all of them tables of constants.
_LONGEST_REPEATED = 400
_FEWEST = 4
_SHORT = 8
_SHORT_TIMES, _LONGER_TIMES = 6, 5
_LONGEST_RULE = 160
_LETTER = re.compile(rb"[A-Za-z]")
_LETTERS = re.compile(rb"[A-Za-z_]+")
_SIGN = re.compile(rb"\W")
_CHARACTER = re.compile(rb"[^\x80-\xbf]")
# Signs that start the repeated unit if it has one: `, "b"` in `"a", "b", "b"`; the first group takes precedence.
_BEGINNINGS = (b",;:([{+-*/|&", b".")


def line_end(written: bytes) -> int | None:
    """The first line end after a nonblank character (not included), or the point where the text begins to repeat."""
    first = re.search(rb"\S", written)
    end = _before_newline(written, written.find(b"\n", first.end())) if first else None
    return end if end is not None else repetition(written)


def repetition(written: bytes) -> int | None:
    """The end of the first copy if the text ends with too many copies of a unit; otherwise None."""
    for size in range(2, min(_LONGEST_REPEATED, len(written) // _FEWEST) + 1):
        if not written.endswith(written[-size:] * _FEWEST):
            continue
        unit = written[-size:]
        times = _most_times(unit)
        if times is not None and written.endswith(unit * times):
            start = len(written) - size * times
            while start and written[start - 1] == written[start - 1 + size]:
                start -= 1
            places = range(start, start + size)
            turns = (place for signs in _BEGINNINGS for place in places if written[place] in signs)
            return next(turns, start) + size
    return None


def _most_times(unit: bytes) -> int | None:
    """How many copies in a row are too many; None: no number is (blank lines, rows of a table)."""
    if not _LETTER.search(unit):
        return None if b"\n" in unit else _longest_rule(unit)
    if _LETTERS.fullmatch(unit) and len(set(unit)) > 1:
        return _FEWEST
    if _SIGN.search(unit):
        return _SHORT_TIMES if len(unit) <= _SHORT else _LONGER_TIMES
    return _longest_rule(unit)


def _longest_rule(unit: bytes) -> int:
    """Characters count, not bytes: `─` has three."""
    return _LONGEST_RULE // max(1, len(_CHARACTER.findall(unit))) + 1


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
