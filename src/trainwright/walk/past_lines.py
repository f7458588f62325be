"""The lines before training that stopped a script, and that a copy in memory goes past so that its training is walked."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainwright.core import Failure, Finding, Fix, Proof, Report, Severity, Shown, Status, Verdict
from trainwright.core.misspelt import mend
from trainwright.core.report import StageRun
from trainwright.core.rule import load_rules
from trainwright.core.verdict import FIXED
from trainwright.seams.scripts.edited_files import standing_in
from trainwright.seams.source.going_past import Passed, go_past

# A script with more such lines is not followed to its training.
MOST_PASSED = 6
_OF_EVALUATION, _OF_SCRIPT = "crashing-metrics", "script-stopped"


class PastLines:
    """The lines that copies of a script go past, and what was found at them."""

    def __init__(self) -> None:
        self.passed: list[Passed] = []
        self.findings: list[Finding] = []
        self._copies: dict[str, str] = {}
        self._standing = contextlib.ExitStack()

    def go_past(self, failure: Failure, found: Sequence[Finding]) -> bool:
        """Let a copy go past the exception that ended the script; returns whether there is one.

        Args:
            found: what explains it, with what was found before it.
        """
        passed = go_past(failure, _read) if len(self.passed) < MOST_PASSED else None
        if passed is None:
            return False
        known = {(f.name, f.where) for f in self.findings}
        new = [f for f in found if (f.name, f.where) not in known]
        if all(f.where != failure.where for f in new):
            new.append(_told(failure, passed))
        self.findings += new
        self.passed.append(passed)
        self._copies[str(Path(passed.where.file).resolve())] = passed.text
        self._standing.close()
        self._standing.enter_context(standing_in(self._copies))
        return True

    def close(self) -> None:
        """Let the files be read as they are."""
        self._standing.close()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """While the context lasts, files are read as they are."""
        self._standing.close()
        try:
            yield
        finally:
            self._standing.enter_context(standing_in(self._copies))

    def complete(self, report: Report) -> Report:
        """The report of a copy's training, with what stopped the script before it."""
        if not self.passed:
            return report
        known = {(f.name, f.where) for f in report.findings}
        findings = tuple(f for f in self.findings if (f.name, f.where) not in known)
        stages = tuple(_mended(run, findings) for run in report.stages)
        changed = tuple(one.said for one in self.passed)
        report = replace(
            report,
            findings=(*findings, *report.findings),
            stages=stages,
            message=f"What lies behind was walked in a copy in memory ({'; '.join(changed)}). {report.message}".strip(),
            copies=dict(self._copies),
            changed=changed,
            passed=findings,
        )
        return replace(report, verdict=_verdict(report))


def _read(file: str) -> str | None:
    """A file's text as it is run now, with the copies made so far."""
    return "".join(linecache.getlines(str(Path(file).absolute()))) or None


def _told(failure: Failure, passed: Passed) -> Finding:
    """The finding on an exception that no rule explains."""
    name = _OF_EVALUATION if passed.measures else _OF_SCRIPT
    rule = next(one for one in load_rules() if one.name == name)
    what = f"the evaluation raised {failure}" if passed.measures else f"the script stops with {failure}"
    return Finding(
        message=what,
        measured={"raised": failure.type},
        where=failure.where,
        proof=Proof("it was run to this line, and with another one in its place behind it"),
        fix=Fix(does=passed.fix) if passed.fix else mend(failure),
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
    )


def _verdict(report: Report) -> Verdict | None:
    """The verdict, with the errors that were passed."""
    verdict, errors = report.verdict, [f.name for f in report.findings if f.severity == Severity.ERROR]
    if not errors:
        return verdict
    is_fixed = verdict is None or verdict.shown != Shown.BROKEN or verdict.why.endswith(FIXED)
    names = list(dict.fromkeys(errors))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Verdict(shown=Shown.BROKEN, why=f"{names[0]}{more}{FIXED if is_fixed else ''}")


def _mended(run: StageRun, findings: Sequence[Finding]) -> StageRun:
    """A stage that was walked behind the lines that were passed in it."""
    names = [f.name for f in findings if f.stage == run.stage]
    if not names or not (run.status.through or run.status == Status.SKIPPED):
        return run
    return replace(run, status=Status.REPAIRED, why=", ".join(dict.fromkeys(names)))
