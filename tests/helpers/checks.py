"""Checking test scripts, and reading what they expect from comments on their lines."""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from report_schema import check_data
from running import run
from trainwright.core import Report, Rule, Severity, Stage
from trainwright.core.report import from_dict
from trainwright.registry import load_rules
from twins import write_script

_EXPECT = re.compile(r"#\s*expect:\s*([a-z-]+)")


def shorten_run(rule: str) -> dict[str, Any]:
    """Options of a run that is cut early, if a rule does without its end."""
    return {} if _rules()[rule].runs_at == Stage.BASELINE else {"few": True}


@functools.cache
def _rules() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_rules()}


def check_script(script: Path, *arguments: str, **options: Any) -> Report:
    """The report of a script; `options` are those of `running.run`."""
    script = write_script(script)
    if "debug_launcher" in script.read_text(encoding="utf-8"):  # it forks, and the server has left threads
        return check_apart(script, *arguments)
    return run(script, *arguments, **options)


def check_apart(script: Path, *arguments: str) -> Report:
    """The report of a script that is checked in a process of its own."""
    command = [sys.executable, "-m", "trainwright", "check", "--json", "-", str(script), *arguments]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    data = json.loads(ended.stdout)
    check_data(data)
    return from_dict(data)


def expected(script: Path) -> tuple[str, int]:
    """The rule name that a comment `# expect: name` announces, and its line."""
    announced = all_expected(script)
    assert announced, f"{script} announces no finding"
    return announced[0]


def all_expected(script: Path) -> list[tuple[str, int]]:
    """The rule names that comments `# expect: name` announce, each with its line."""
    lines = enumerate(write_script(script).read_text(encoding="utf-8").split("\n"), 1)
    return [(found.group(1), number) for number, line in lines if (found := _EXPECT.search(line))]


def said(report: Report) -> str:
    """The report in a few lines, for the message of a failed assertion."""
    lines = [f"{f.code} {f.name} {f.severity} at {f.where}: {f.message}" for f in report.findings]
    lines += [f"{s.stage.label}: {s.status} {s.why}" for s in report.stages]
    return "\n".join([*lines, report.message, str(report.failure or ""), *report.internal_errors])


def loud(report: Report) -> list[str]:
    """Names of the findings above a note."""
    return [f.name for f in report.findings if f.severity != Severity.NOTE]
