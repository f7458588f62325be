"""The cells of notebooks that are checked as one text: the line at which each cell begins.

A comment of ours stands before each cell in the text, so that the cells of an edited copy are found as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path

_MARK = re.compile(r"# trainwright: cell (\d+)$")
_starts: dict[str, dict[int, int]] = {}


def mark(cell: int) -> str:
    """The comment that stands on the line before a cell."""
    return f"# trainwright: cell {cell}"


def starts(text: str) -> dict[int, int]:
    """The first line of each cell in a text, by the cell's number."""
    found = ((_MARK.match(line), number) for number, line in enumerate(text.splitlines(), 1))
    return {int(marked[1]): number + 1 for marked, number in found if marked}


def remember(file: str, text: str) -> None:
    """Register a file whose lines are to be counted within its cells."""
    _starts[file] = starts(text)


def is_notebook(file: str) -> bool:
    """Whether a file's lines are counted within cells."""
    return bool(_known(file))


def cell_of(file: str, line: int) -> tuple[int, int] | None:
    """The cell that contains a line of a file's text, and the line's number in that cell."""
    known = _known(file)
    firsts = sorted(known.values())
    at = bisect_right(firsts, line) - 1
    if at < 0:
        return None
    return next(cell for cell, first in known.items() if first == firsts[at]), line - firsts[at] + 1


def line_of(file: str, cell: int, line: int) -> int:
    """The line of the text for a line of a cell; unchanged if the file has no such cell."""
    return _known(file).get(cell, 1) + line - 1


def bounds(file: str, cell: int) -> tuple[int, int]:
    """The first and last line of a cell in its file's text; the last cell has no end."""
    first = _known(file)[cell]
    after = [other for other in _known(file).values() if other > first]
    return first, min(after) - 2 if after else 2**31


def tell_lines(file: str, lines: list[int]) -> str:
    """Lines of a file in words: "line 4, 7", and in a notebook "cell 2, line 4, cell 3, line 1"."""
    if not is_notebook(file):
        return f"line {', '.join(str(line) for line in lines)}"
    places = [cell_of(file, line) for line in lines]
    return ", ".join(f"cell {place[0]}, line {place[1]}" for place in places if place)


def _known(file: str) -> dict[int, int]:
    if not _starts:
        return {}
    return _starts.get(file) or _starts.get(str(Path(file).absolute()), {})
