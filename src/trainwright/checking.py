"""One check of the command line: the walk, the rehearsal beside it, and what becomes of the reports."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from trainwright.core.report import Report, combined, exit_status
from trainwright.output import Targets, announce, checked, own_stdout, progress, tell, write_all
from trainwright.start.launchers import free_port
from trainwright.start.program import Program

if TYPE_CHECKING:
    from trainwright.fixes.verify import SecondWalk
    from trainwright.options import Options
    from trainwright.rehearsing import Rehearsing

# Of the budget of a check with a rehearsal, what the walk may take.
WALK_SHARE = 0.5


def check_program(
    program: Program,
    targets: Targets,
    options: Options,
    *,
    train: bool = False,
    verify: bool = False,
    required: bool = False,
    copies: str | None = None,
    rehearsed: bool = False,
) -> int:
    """Check a program, show its reports and write them to the targets; returns the exit status.

    Args:
        train: then let it train for real if no error was found.
        verify: check the fixes by a second walk.
        required: learning that was not shown is a failure.
        copies: a JSON file with texts that replace files.
        rehearsed: with a rehearsal.
    """
    targets = checked(targets)
    tell(program.said)
    announce(program.script)
    program.set_environment()

    from trainwright.rehearsing import add_review
    from trainwright.report import terminal
    from trainwright.seams.scripts.edited_files import standing_in
    from trainwright.walk.run import check_script

    to_stdout = "-" in targets.given.values()
    # The current streams: a script may replace them with its own and write that output to a file.
    console = Console(file=sys.stderr if to_stdout else sys.stdout)
    reports: list[Report] = []
    second = _second_walk(program, options)
    started = time.monotonic()

    with progress() as say, own_stdout(to_stdout) as stdout:

        def show(report: Report, further: int) -> None:
            say("")
            reports.append(report)
            terminal.show(report, console)
            if train:
                write_all(targets, report, len(reports), stdout)
            elif not further:
                terminal.show_trainings(reports, console)
                write_all(targets, combined(reports), 1, stdout)

        waiting: list[Report] = []

        def show_waiting() -> int:
            """Show what was held back until the rehearsal has ended, or its fixes are verified."""
            spent = time.monotonic() - started - sum(r.seconds for r in waiting)
            found = add_review(waiting, rehearsal.finish(waiting, say), options) if rehearsal else waiting
            for index, report in enumerate(found, start=1):
                shown = _verified(report, second, spent, options, say) if verify else report
                show(shown, len(found) - index)
            unshown = any(r.verdict is not None and r.verdict.shown == "not shown" for r in reports)
            return exit_status(reports) or int(required and unshown)

        with standing_in(_copies(copies)), _rehearsing(program, options, rehearsed) as rehearsal:
            check_script(
                program.script,
                program.arguments,
                replace(options, budget=options.budget * WALK_SHARE) if rehearsal else options,
                module=program.module,
                train=train,
                say=say,
                done=(lambda report, further: waiting.append(report)) if verify or rehearsal else show,
                leave=show_waiting,
            )
            return show_waiting()


def _rehearsing(
    program: Program, options: Options, rehearsed: bool
) -> contextlib.AbstractContextManager[Rehearsing | None]:
    """The rehearsal of a check, or None."""
    from trainwright.rehearsing import rehearsing

    return rehearsing(program, options) if rehearsed else contextlib.nullcontext()


def _second_walk(program: Program, options: Options) -> SecondWalk:
    """A second check of the same script, in the environment this process has before the script runs in it."""
    from trainwright.fixes.verify import SecondWalk

    words = ["--no-rehearsal", "--budget", str(options.budget), "--seed", str(options.seed)]
    for name in options.ignore:
        words += ["--ignore", name]
    words += [] if options.repair else ["--no-repair"]
    words += ["--device", options.device]
    words += ["-m"] if program.module else []
    environment = dict(os.environ)
    if "MASTER_PORT" in program.environment:  # this process may still be listening on its own
        environment["MASTER_PORT"] = str(free_port())
    return SecondWalk(
        words=(*words, "--", program.script, *program.arguments),
        folder=str(Path.cwd()),
        environment=environment,
        seconds=options.budget,
        safe_path=not {"", str(Path.cwd())} & set(sys.path),
    )


def _verified(
    report: Report, second: SecondWalk, start_seconds: float, options: Options, say: Callable[[str], None]
) -> Report:
    """The report after a second walk, whose start may take up to twice as long as the first one's."""
    from trainwright.fixes.verify import SPARE_SECONDS, verified

    if not report.findings or report.message.startswith("Interrupted"):
        return report
    say("walking an edited copy")
    seconds = options.budget + 2 * start_seconds + SPARE_SECONDS
    only = () if report.training is None else ("--training", str(report.training))
    return verified(report, replace(second, seconds=seconds, words=(*only, *second.words)))


def _copies(file: str | None) -> dict[str, str]:
    """Texts that replace files during a second walk."""
    if file is None:
        return {}
    import json

    texts: dict[str, str] = json.loads(Path(file).read_text("utf-8"))
    return texts
