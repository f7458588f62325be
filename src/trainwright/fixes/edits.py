"""The edits of fixes: which of them are compatible, and their diffs."""

from __future__ import annotations

import difflib
import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainwright.core import Edit, Finding, Report, cells
from trainwright.fixes.rewriting import apply


def with_diffs(report: Report) -> Report:
    """The report, with a diff for every fix whose edits are known and match the source."""
    return replace(report, findings=tuple(_with_diff(f) for f in report.findings))


def _with_diff(finding: Finding) -> Finding:
    fix = finding.fix
    if fix is None or not fix.edits or fix.diff is not None:
        return finding
    return replace(finding, fix=replace(fix, diff=diff(fix.edits)))


def diff(edits: Sequence[Edit], context: int = 1) -> str | None:
    """A unified diff of all edits, or None if any of them does not fit the source.

    Args:
        context: lines shown around a change.
    """
    files = edit_files(edits)
    parts: list[str] = []
    for file, (before, after) in (files or {}).items():
        for name, old, new in _sources(file, before, after):
            for line in difflib.unified_diff(old, new, name, name, n=context):
                parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts) or None


def _sources(file: str, before: str, after: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """What is compared, by name: a file's lines before and after, or those of each of its cells."""
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    if not cells.is_notebook(file):
        yield file, old, new
        return
    of_old, of_new = cells.starts(before), cells.starts(after)
    numbers = list(of_old)
    for number, following in zip(numbers, [*numbers[1:], None]):
        parts = [
            lines[first[number] - 1 : first[following] - 2 if following else None]
            for lines, first in ((old, of_old), (new, of_new))
        ]
        yield f"{file}, cell {number}", parts[0], parts[1]


def edit_files(edits: Sequence[Edit]) -> dict[str, tuple[str, str]] | None:
    """The text of each file before and after its edits, or None if any of them does not fit."""
    files: dict[str, tuple[str, str]] = {}
    for file in dict.fromkeys(e.file for e in edits):
        try:
            before = _text(file)
        except (OSError, UnicodeDecodeError):
            return None
        after = apply(before, [e for e in edits if e.file == file])
        if after is None:
            return None
        files[file] = (before, after)
    return files


def _text(file: str) -> str:
    """A file's source, or what stands in for it (seams/scripts/edited_files.py); of a notebook the text of its cells."""
    known = file if file in linecache.cache else str(Path(file).absolute())
    lines = linecache.getlines(known)
    stands_in = known in linecache.cache and linecache.cache[known][1:2] == (None,)  # it has no time of modification
    return "".join(lines) if stands_in or cells.is_notebook(file) else Path(file).read_text("utf-8")


def fitting(report: Report) -> list[Finding]:
    """The findings whose edits can be applied together; earlier ones take precedence over incompatible later ones."""
    chosen: list[Finding] = []
    for finding in report.findings:
        if finding.fix and finding.fix.edits and edit_files(edits_of([*chosen, finding])) is not None:
            chosen.append(finding)
    return chosen


def edits_of(findings: Iterable[Finding]) -> list[Edit]:
    """All edits of the findings' fixes, without duplicates."""
    return list(dict.fromkeys(edit for f in findings if f.fix for edit in f.fix.edits))


def patch(report: Report) -> str:
    """One unified diff of all fixes that can be made together; empty if no edit is known. No patch edits a notebook."""
    edits = [edit for edit in edits_of(fitting(report)) if not cells.is_notebook(edit.file)]
    return diff(edits, context=3) or ""
