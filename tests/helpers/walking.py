"""Walking test scripts, and reading what they expect from comments on their lines."""

import contextlib
import functools
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from running import run
from trainwright.core.finding import Severity
from trainwright.core.report import UNWALKED, Report, from_dict
from trainwright.core.rule import Rule, load_rules
from trainwright.core.stage import Stage
from trainwright.options import Options
from trainwright.walk.run import check_script

_EXPECT = re.compile(r"#\s*expect:\s*([a-z-]+)")


def shorten_walk(rule: str) -> dict[str, Any]:
    """Options of a walk that skips the stages that train, or the longest training, if a rule does without."""
    last = _rules()[rule].runs_at
    return {} if last == Stage.BASELINE else {"updates": int(last == Stage.OVERFIT)}


@functools.cache
def _rules() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_rules()}


def walk(script: Path, *arguments: str, budget: float = 60.0, **options: Any) -> Report:
    """The report of the script's first training, or of its run where no training is walked; `options` are those of Options."""
    if "debug_launcher" in script.read_text(encoding="utf-8"):  # it forks, and tests before it left threads
        return walk_apart(script, *arguments)
    report = walk_all(script, *arguments, budget=budget, **options)[0]
    return run(script, *arguments, walked=report, budget=budget, **options) if UNWALKED in report.message else report


def walk_all(script: Path, *arguments: str, budget: float = 60.0, **options: Any) -> list[Report]:
    """A report for each of the script's trainings."""
    forget_accelerator()
    forget_keras()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return check_script(script, arguments, Options(budget=budget, **options), strict=True)


def walk_apart(script: Path, *arguments: str) -> Report:
    """The report of a script that is walked in a process of its own."""
    command = [sys.executable, "-m", "trainwright", "check", "--json", "-", str(script), *arguments]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    return from_dict(json.loads(ended.stdout))


def forget_accelerator() -> None:
    """Accelerate keeps the first Accelerator's settings for the whole process; each script is to have its own."""
    if state := sys.modules.get("accelerate.state"):
        state.AcceleratorState._reset_state(reset_partial_state=True)
        state.GradientState._reset_state()


def forget_keras() -> None:
    """Keras keeps its precision, its seeds and the names of its layers for the whole process."""
    for name in ("keras", "tf_keras"):
        if keras := sys.modules.get(name):
            keras.utils.clear_session() if name == "keras" else keras.backend.clear_session()
            keras.mixed_precision.set_global_policy("float32")


def expected(script: Path) -> tuple[str, int]:
    """The rule name that a comment `# expect: name` announces, and its line."""
    announced = all_expected(script)
    assert announced, f"{script} announces no finding"
    return announced[0]


def all_expected(script: Path) -> list[tuple[str, int]]:
    """The rule names that comments `# expect: name` announce, each with its line."""
    lines = enumerate(script.read_text(encoding="utf-8").split("\n"), 1)
    return [(found.group(1), number) for number, line in lines if (found := _EXPECT.search(line))]


def said(report: Report) -> str:
    """The report in a few lines, for the message of a failed assertion."""
    lines = [f"{f.code} {f.name} {f.severity} at {f.where}: {f.message}" for f in report.findings]
    lines += [f"{s.stage.label}: {s.status} {s.why}" for s in report.stages]
    return "\n".join([*lines, report.message, str(report.failure or ""), *report.internal_errors])


def loud(report: Report) -> list[str]:
    """Names of the findings above a note."""
    return [f.name for f in report.findings if f.severity != Severity.NOTE]
