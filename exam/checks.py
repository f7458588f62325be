"""What a check says of a program, and how that is judged."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exam.programs import Program

_NEAR = 1  # lines between the change and the line of a finding
# They say that it does not learn, or that something is odd, and not why: right where a fault has no rule of its own, but
# not its name.
SYMPTOMS = frozenset({"unlearnable-batch", "surprising-initial-loss"})
_PATIENCE = 480  # seconds for a process whose check has a budget of 120


@dataclass(frozen=True)
class Verdict:
    """The findings above a note, in the report's order, and how the process ended."""

    findings: tuple[tuple[str, int | None], ...]  # name of the rule, line
    first: tuple[str, int | None] | None
    status: int | None  # of the process; None: it was ended after its patience
    seconds: float
    stages: tuple[tuple[str, str], ...] = ()
    internal_errors: int = 0
    message: str = ""

    @property
    def silent(self) -> bool:
        """Whether a user would take the program for sound."""
        return not self.findings and self.status == 0


@dataclass(frozen=True)
class Marks:
    """How the check of one planted program did."""

    named: bool  # a finding has one of the fault's names
    first: bool  # and it is the first cause
    line: bool  # and it is on the line of the change, or next to it
    elsewhere: bool  # the first cause has another name, but is on the line of the change
    symptom: bool  # the first cause is only that it does not learn
    wrong: bool  # the first cause has another name and another line
    false_pass: bool  # nothing found, and exit status 0


def check_program(program: Program, source: str) -> Verdict:
    """Check a source as a user would: in a process of its own, with the default budget."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / program.path.name
        script.write_text(source, encoding="utf-8")
        started = time.monotonic()
        command = [sys.executable, "-m", "trainwright", "check", "--json", "-", str(script), *program.arguments]
        try:
            ended = subprocess.run(
                command, cwd=folder, env=program.environment, timeout=_PATIENCE,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Verdict((), None, None, _PATIENCE)
        seconds = time.monotonic() - started
    try:
        report = json.loads(ended.stdout)
    except json.JSONDecodeError:
        return Verdict((), None, ended.returncode, seconds, message=ended.stderr.strip()[-400:])
    loud = [f for f in report["findings"] if f["severity"] != "note"]
    first = report["first_cause"]
    return Verdict(
        findings=tuple(_told(f) for f in loud),
        first=_told(first) if first else None,
        status=ended.returncode,
        seconds=seconds,
        stages=tuple((s.get("name", ""), s.get("status", "")) for s in report.get("stages", ())),
        internal_errors=len(report.get("internal_errors", ())),
        message="" if not first else str(first.get("message", ""))[:300],
    )


def _told(finding: dict[str, Any]) -> tuple[str, int | None]:
    return finding["name"], (finding["where"] or {}).get("line")


def judge(verdict: Verdict, named: tuple[str, ...], lines: tuple[int, ...]) -> Marks:
    """`lines`: where the change is, and where the program raised because of it."""
    first, right_names = verdict.first, set(named) - SYMPTOMS
    right = first is not None and first[0] in right_names
    at = first[1] if first else None
    symptom = first is not None and first[0] in SYMPTOMS
    near = at is not None and any(abs(at - line) <= _NEAR for line in lines)
    return Marks(
        named=any(name in right_names for name, _ in verdict.findings),
        first=right,
        line=right and near,
        elsewhere=first is not None and not right and near and not symptom,
        symptom=symptom,
        wrong=first is not None and not right and not near and not symptom,
        false_pass=verdict.silent,
    )
