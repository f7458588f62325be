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
    command, verdict = report.typed, report.verdict
    if command is None:
        return ""
    again, learns = f"check again: {_check(command)}", verdict is not None and verdict.shown == Shown.LEARNS
    if report.internal_errors:
        return "report the internal error above; your script is not at fault."
    if report.is_interrupted:
        return f"let it run to its end, and {again}"
    if (first := report.first_cause) is not None:
        at = f" at {first.where}" if first.where is not None else ""
        return _patched(first, command) or f"mend {first.name}{at}, and {again}"
    if report.known and not learns:
        return "nothing is new; what the baseline knows is still to be mended."
    if report.faulty:
        return f"mend the error above, and {again}"
    if verdict is None or not report.shows_training:
        return f"name a script and arguments that train, and {again}"
    if learns:
        real = f": {shlex.join(command.real)}" if command.real else "."
        to_do = "look at what stands out above; if it is meant" if verdict.look_at else "nothing is left to mend"
        return f"{to_do}, run the script for real{real}"
    if verdict.shown in (Shown.NOT_SHOWN, Shown.CANNOT_BE_JUDGED):
        is_held_out = any(row.rows_of == HELD_OUT for row in (report.sheet.scores if report.sheet else ()))
        needed = "train for longer, or evaluate more rows" if is_held_out else "evaluate rows that are not trained on"
        return _longer(report, command) or f"{needed}, and {again}"
    return f"mend what the verdict names, and {again}"


def _patched(first: Finding, command: Command) -> str:
    """How the first cause is mended by a patch; empty: by none."""
    if first.fix is None or not first.fix.diff:
        return ""
    file = dict(zip(command.options, command.options[1:], strict=False)).get("--diff", "-")
    if file != "-":
        return f"apply the patch: patch -p0 < {shlex.quote(file)}"
    return f"write the fixes as a patch, and apply it: {_check(command, '--diff', PATCH)}; patch -p0 < {PATCH}"


def _longer(report: Report, command: Command) -> str:
    """The command that gives a training which was cut short more time; empty: none was."""
    if report.sheet is None or report.sheet.cut_at is None:
        return ""
    budget = command.budget * (SPARE / report.sheet.share if report.sheet.share else LONGER)
    return f"give the training more time: {_check(command, '--budget', str(math.ceil(budget)))}"


def _check(command: Command, option: str = "", value: str = "") -> str:
    """The command of this check, with an option's value in the place of the one before."""
    words = [*command.options]
    if option in words:
        del words[words.index(option) : words.index(option) + 2]
    given = [option, value] if option else []
    return shlex.join(["trainwright", "check", *given, *words, *command.words])
