"""What to do next: the last line of a report, with the command for this script."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

from trainwright.core import Finding, Report, Severity, Shown, Stage
from trainwright.core.report import Command
from trainwright.core.sheet import HELD_OUT
from trainwright.core.verdict import ON_PURPOSE, SHORT_OF_MEMORY

PATCH = "fixes.patch"
# A plan of unknown length gets so many times the budget; a known one, a part more than it seems to need, or the most.
LONGER, SPARE, MOST_LONGER = 4, 1.2, 10


def next_step(report: Report) -> str:
    """One line; empty where the report is of no command: of objects, or a notebook's cell."""
    command, verdict = report.typed, report.verdict
    if command is None:
        return ""
    again = f"check again: {command.again()}"
    run = f"run the script for real{f': {shlex.join(command.real)}' if command.real else '.'}"
    if (first := report.first_cause) is not None:
        at = f" at {first.where}" if first.where is not None else ""
        is_result = (
            first.stage == Stage.REHEARSAL and first.severity == Severity.WARNING
        )  # seen at a line, not caused by it
        to_do = f"find the cause of {first.name}, seen{at}" if is_result else f"mend {first.name}{at}"
        return _patched(first, command) or f"{to_do}, and {again}"
    if report.internal_errors:
        return "report the internal error above; your script is not at fault."
    if report.is_interrupted:
        return f"let it run to its end, and {again}"
    if report.faulty:
        return f"mend the error above, and {again}"
    if any(finding.severity != Severity.NOTE for finding in report.known):
        return "nothing is new; what the baseline knows is still to be mended."
    if verdict is None or not report.shows_training:
        return f"name a script and arguments that train, and {again}"
    if verdict.shown == Shown.LEARNS:
        return f"{'look at what stands out above; if it is meant' if verdict.look_at else 'nothing is left to mend'}, {run}"
    if verdict.shown == Shown.CANNOT_BE_JUDGED:
        return f"judge it by its own numbers, and {run}"
    if verdict.shown == Shown.NOT_SHOWN:
        return _to_show(report, verdict.why, command)
    return f"mend what the verdict names, and {again}"


def _to_show(report: Report, why: str, command: Command) -> str:
    """What is needed to see whether a training learns: another script, or more time for one that was cut short."""
    sheet = report.sheet
    if ON_PURPOSE in why:
        needed = "train on all rows"
    elif SHORT_OF_MEMORY in why:
        needed = "let it need less memory"
    elif sheet is not None and sheet.cut_at is not None:
        times = min(SPARE / sheet.share, MOST_LONGER) if sheet.share else LONGER
        return f"give the training more time: {command.again('--budget', str(math.ceil(command.budget * times)))}"
    else:
        is_held_out = sheet is not None and any(row.rows_of == HELD_OUT for row in sheet.scores)
        needed = "train for longer, or evaluate more rows" if is_held_out else "evaluate rows that are not trained on"
    return f"{needed}, and check again: {command.again()}"


def _patched(first: Finding, command: Command) -> str:
    """How the first cause is mended by a patch; empty: by none, as in a notebook, or outside the working folder."""
    names = re.findall(r"^--- (.+)$", first.fix.diff, re.MULTILINE) if first.fix is not None and first.fix.diff else []
    if not names or any(Path(name).is_absolute() or re.search(r", cell \d+$", name) for name in names):
        return ""
    file = dict(zip(command.options, command.options[1:], strict=False)).get("--diff", "-")
    if file != "-":
        return f"apply the patch: patch -p0 < {shlex.quote(file)}"
    return f"write the fixes as a patch, and apply it: {command.again('--diff', PATCH)}; patch -p0 < {PATCH}"
