"""What to do next: the last line of a report, with the command for this script."""

from __future__ import annotations

import math
import shlex

from trainwright.core import Finding, Report, Shown
from trainwright.core.report import Command
from trainwright.core.sheet import HELD_OUT

PATCH = "fixes.patch"
# A plan of unknown length gets so many times the budget; a known one, a part more than it seems to need.
LONGER, SPARE = 4, 1.2


def next_step(report: Report) -> str:
    """One line; empty where the report is of no command: of objects, or a notebook's cell."""
    command = report.command
    if command is None:
        return ""
    again = _check(command)
    if report.internal_errors:
        return "report the internal error above; your script is not at fault."
    if report.is_interrupted:
        return f"let the check run to its end: {again}"
    if (first := report.first_cause) is not None:
        return _mended(first, command)
    if report.faulty:
        at = f" at {report.failure.where}" if report.failure is not None and report.failure.where is not None else ""
        return f"mend the error{at}, and check again: {again}"
    if report.verdict is None or not report.shows_training:
        return f"let this command reach a training: {again}"
    real = f": {shlex.join(command.real)}" if command.real else "."
    match report.verdict.shown:
        case Shown.LEARNS if report.verdict.look_at:
            return f"look at what stands out above; if it is meant, run the script for real{real}"
        case Shown.LEARNS:
            return f"nothing is left to mend; run the script for real{real}"
        case _:
            return _shown(report, command)


def _mended(first: Finding, command: Command) -> str:
    """How the first cause is mended."""
    again = _check(command)
    if first.fix is not None and first.fix.diff:
        file = dict(zip(command.options, command.options[1:], strict=False)).get("--diff", "")
        if file and file != "-":
            return f"apply the patch: patch -p0 < {shlex.quote(file)}"
        return f"write the fixes as a patch, and apply it: {_check(command, '--diff', PATCH)}; patch -p0 < {PATCH}"
    at = f" at {first.where}" if first.where is not None else ""
    return f"mend {first.name}{at}, and check again: {again}"


def _shown(report: Report, command: Command) -> str:
    """How it may be shown whether the training learns."""
    sheet = report.sheet
    if sheet is not None and sheet.cut_at is not None:
        budget = command.budget * (SPARE / sheet.share if sheet.share else LONGER)
        return f"give the training more time: {_check(command, '--budget', str(math.ceil(budget)))}"
    again = _check(command)
    if sheet is None or not any(row.rows_of == HELD_OUT for row in sheet.scores):
        return f"let the script evaluate rows that it does not train on, and check again: {again}"
    return f"train for longer, or evaluate more rows, and check again: {again}"


def _check(command: Command, option: str = "", value: str = "") -> str:
    """The command of this check, with an option's value in the place of the one before."""
    words = [*command.options]
    if option in words:
        del words[words.index(option) : words.index(option) + 2]
    words = [word for word in words if not (option and word.startswith(f"{option}="))]
    given = [option, value] if option else []
    return shlex.join(["trainwright", "check", *given, *words, *command.words])
