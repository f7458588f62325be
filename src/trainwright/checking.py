"""One check of the command line: the walk, the rehearsal with it, and what becomes of the reports."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from trainwright.core import Shown
from trainwright.core.report import Report, combined, exit_status
from trainwright.output import Targets, announce, checked, own_stdout, progress, tell, write_all
from trainwright.seams.processes import position
from trainwright.seams.scripts.edited_files import standing_in
from trainwright.start.launchers import free_port
from trainwright.start.program import Program
from trainwright.walk.closing import stops
from trainwright.walk.process import Task, Walking

if TYPE_CHECKING:
    from trainwright.fixes.verify import SecondWalk
    from trainwright.options import Options
    from trainwright.rehearsal.record import Record
    from trainwright.rehearsal.record_rows import Wanted
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
    options.check()
    tell(program.said)
    announce(program.script)
    program.set_environment()
    _know_cells(program)
    # A second check runs in the environment that this process has.
    second = _second_walk(program, options, rehearsed) if verify else None
    is_alone = "-" in targets.given.values()
    with (
        own_stdout(is_alone) as stdout,
        progress() as say,
        standing_in(texts := _copies(copies)),
        Walking() as walking,
        _rehearsing(program, options, say, rehearsed, texts) as rehearsal,
    ):
        showing = _Showing(
            targets,
            options,
            say,
            stdout,
            second,
            rehearsal,
            train=train,
            required=required,
            processes=program.processes,
        )
        task = Task(
            script=program.script,
            arguments=program.arguments,
            module=program.module,
            options=replace(options, budget=options.budget * WALK_SHARE) if rehearsal else options,
            copies=texts,
            shown_on_errors=is_alone,
            ends_lines=not sys.stderr.isatty(),  # in a terminal, the line of progress wipes out what stood there
        )
        was_ended = walking.run(task, say, showing.take)
        status = showing.finish()
    if was_ended:
        tell("a bare `except:` in the script caught the end of the check, so its process was ended.")
    return _train(program) if showing.trains else status


def _train(program: Program) -> int:
    """Run the program itself in the place of this process; where that cannot be, returns its exit status."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    words = [sys.executable, *flags, *(["-m"] if program.module else []), program.script, *program.arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":  # its `exec` starts another process, and does not wait for it
        return subprocess.call(words)
    return os.execv(words[0], words)


def _know_cells(program: Program) -> None:
    """Count the lines of a notebook within its cells."""
    from trainwright.seams.scripts.notebook import standing_for, text_of

    if not program.module and (text := text_of(Path(program.script))) is not None:
        with standing_for(Path(program.script), text):
            pass


class _Showing:
    """Shows the reports of a check, and writes them to its targets.

    Reports wait until the rehearsal has ended, or their fixes are verified; without either each is shown as it comes.
    """

    def __init__(
        self,
        targets: Targets,
        options: Options,
        say: Callable[[str], None],
        stdout: TextIO,
        second: SecondWalk | None,
        rehearsal: Rehearsing | None,
        *,
        train: bool,
        required: bool,
        processes: str,
    ) -> None:
        self._targets, self._options, self._say, self._stdout = targets, options, say, stdout
        self._second, self._rehearsal = second, rehearsal
        self._train, self._required = train, required
        here = position()
        self._processes = str(here.world_size) if here is not None else processes
        self._console = Console(file=sys.stderr if "-" in targets.given.values() else sys.stdout)
        self._started = time.monotonic()
        self.trains = False
        """Whether the script is to train for real."""
        self._shown: list[Report] = []
        self._waiting: list[Report] = []

    def take(self, report: Report, further: int) -> None:
        """Take a report of the walk; so many more come with it."""
        if self._second is not None or self._rehearsal is not None or self._train:
            self._waiting.append(report)
        else:
            self._show(report, further)

    def finish(self) -> int:
        """Show what waits; returns the exit status of the check."""
        waiting, self._waiting = self._waiting, []
        spent = time.monotonic() - self._started - sum(r.seconds for r in waiting)
        found: Sequence[Report] = waiting
        if self._rehearsal is not None and waiting:
            from trainwright.rehearsing import add_review

            record = self._rehearsal.finish(waiting, self._say)
            found = add_review(waiting, record, self._options, self._run_repaired)
            found = [_said_of_one(report, self._processes) for report in found]
            if len(found) == 1:
                found = [replace(found[0], seconds=time.monotonic() - self._started)]
        if self._train and found:
            why_not = _why_not_trained(found, self._options.device)
            self.trains = not why_not
            found = [*found[:-1], replace(found[-1], message=f"{found[-1].message} {why_not}".strip())]
        for index, report in enumerate(found, start=1):
            shown = report
            if self._second is not None:
                shown = _verified(report, self._second, spent, self._options, self._say)
            self._show(shown, len(found) - index)
        if self.trains:
            self._console.print("The script now starts again, for real.")
        unshown = any(r.verdict is not None and r.verdict.shown == Shown.NOT_SHOWN for r in self._shown)
        return exit_status(self._shown) or int(self._required and unshown) or int(self._train and not self.trains)

    def _run_repaired(self, wanted: Sequence[Wanted]) -> Record | None:
        return self._rehearsal.run_repaired(wanted, self._say) if self._rehearsal is not None else None

    def _show(self, report: Report, further: int) -> None:
        from trainwright.report import terminal

        self._say("")
        self._shown.append(report)
        terminal.show(report, self._console, verbose=self._options.verbose)
        if not further:
            terminal.show_trainings(self._shown, self._console)
            write_all(self._targets, combined(self._shown), self._stdout)


def _why_not_trained(reports: Sequence[Report], device: str) -> str:
    """Why a script is not run for real; empty if it is."""
    if any(stops(r) or r.is_interrupted or r.failure is not None for r in reports):
        return "The script was not run for real: fix the findings above first."
    asked = next((r.redirected for r in reports if r.redirected is not None), None)
    if asked is not None and device != "cpu":
        wants = " and ".join(asked.asked)
        return f"The script was not run for real: it asks for {wants}, and {asked.why}."
    if position() is not None:
        return "`run` does not start a training with several processes: launch the script yourself."
    return ""


def _said_of_one(report: Report, processes: str) -> Report:
    """The report with a verdict that says if several processes train and one was run."""
    if not processes or report.verdict is None:
        return report
    why = f"{report.verdict.why}; this is one process of {processes}, run alone"
    return replace(report, verdict=replace(report.verdict, why=why))


def _rehearsing(
    program: Program,
    options: Options,
    say: Callable[[str], None],
    rehearsed: bool,
    texts: Mapping[str, str] | None = None,
) -> contextlib.AbstractContextManager[Rehearsing | None]:
    """The rehearsal of a check, or None."""
    here = position()
    if not rehearsed or (here is not None and here.rank):
        return contextlib.nullcontext()
    from trainwright.rehearsing import rehearsing

    return rehearsing(program, options, say, texts)


def _second_walk(program: Program, options: Options, rehearsed: bool) -> SecondWalk:
    """A second check of the same script, in the environment this process has before the script runs in it."""
    from trainwright.fixes.verify import SecondWalk

    words = [
        "--rehearsal" if rehearsed else "--no-rehearsal",
        "--no-samples",
        "--budget",
        str(options.budget),
        "--seed",
        str(options.seed),
    ]
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
        seconds=options.budget * (2 if rehearsed else 1),
        safe_path=not {"", str(Path.cwd())} & set(sys.path),
    )


def _verified(
    report: Report, second: SecondWalk, start_seconds: float, options: Options, say: Callable[[str], None]
) -> Report:
    """The report after a second walk, whose start may take up to twice as long as the first one's."""
    from trainwright.fixes.verify import SPARE_SECONDS, verified

    if not report.findings or report.is_interrupted:
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
