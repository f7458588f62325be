"""The source lines around a place, as the reports show them."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass
from pathlib import Path

from trainwright.core import Place, cells

AROUND = 1


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """One line of a script."""

    number: int
    text: str
    named: bool
    """It is the line of the finding, not a neighboring one."""


def excerpt(place: Place, around: int = AROUND) -> list[SourceLine]:
    """The line and its neighbors, without their common indentation; empty if there is no such file."""
    known = place.file in linecache.cache  # a notebook cell is not a file
    lines = linecache.getlines(place.file if known else str(Path(place.file).absolute()))
    within = place.in_cell()
    place = place.in_text()
    start, end = (
        cells.bounds(place.file, within.cell) if within.cell and cells.is_notebook(place.file) else (1, len(lines))
    )
    first, last = max(start, place.line - around), min(len(lines), end, place.line + around)
    found = {n: lines[n - 1].rstrip().expandtabs(4) for n in range(first, last + 1)}
    if not found.get(place.line):
        return []
    shown = {n: text for n, text in found.items() if text}
    shared = min(len(text) - len(text.lstrip()) for text in shown.values())
    return [SourceLine(number=n - start + 1, text=text[shared:], named=n == place.line) for n, text in shown.items()]


def path_in_repository(file: str) -> str:
    """A file as programs name it that know the repository around the working directory, or that directory; with slashes.

    The absolute path of a file that lies elsewhere.
    """
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    found = Path(os.path.normpath(here / file))
    return (found.relative_to(root) if found.is_relative_to(root) else found).as_posix()
