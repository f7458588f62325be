"""Copies of a script's files in which the faults that stop it are mended, so that what lies behind them can be run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainwright.core import Edit, Failure, Report, Severity, cells
from trainwright.fixes.rewriting import apply
from trainwright.seams.source.going_past import go_past


class MendedCopies:
    """The files' texts, with the walk's copies and those edits that it has proven in memory; their lines keep their numbers.

    Args:
        reports: what the walk found.
    """

    def __init__(self, reports: Sequence[Report]) -> None:
        self.texts: dict[str, str] = {}
        """By resolved path."""
        self.changes: list[str] = []
        for report in reports:
            self.texts |= report.copies
            self.changes += report.changed
        self.is_whole = True
        """Whether no error is left in them; what a copy does with one says nothing new."""
        passed = {id(f) for report in reports for f in report.passed}
        for finding in (f for report in reports for f in report.findings if f.severity == Severity.ERROR):
            fix = finding.fix
            is_mended = fix is not None and fix.tried and bool(fix.edits) and self._edit(fix.edits, fix.does)
            self.is_whole &= is_mended or id(finding) in passed

    def go_past(self, failure: Failure) -> bool:
        """Change a copy so that the script goes past an exception; returns whether there is one."""
        passed = go_past(failure, self._read)
        if passed is None:
            return False
        self.texts[_key(passed.where.file)] = passed.text
        self.changes.append(passed.said)
        return True

    def _edit(self, edits: Sequence[Edit], does: str) -> bool:
        """Make a finding's edits; returns whether they fit and leave all lines where they are."""
        changed: dict[str, str] = {}
        for file in {edit.file for edit in edits}:
            before = None if cells.is_notebook(file) else self._read(file)
            after = apply(before, [e for e in edits if e.file == file]) if before is not None else None
            if before is None or after is None or before.count("\n") != after.count("\n"):
                return False
            changed[_key(file)] = after
        self.texts |= changed
        self.changes.append(f"line {min(edit.line for edit in edits)}: {does}")
        return True

    def _read(self, file: str) -> str | None:
        try:
            return self.texts.get(_key(file)) or Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def _key(file: str) -> str:
    return str(Path(file).resolve())
