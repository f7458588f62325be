"""One check of the command line: the runs of a script, and what becomes of the report."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from trainwright.baseline import read_baseline, without_known
from trainwright.core import Report, Severity, Shown, Status, exit_status
from trainwright.core.report import Command
from trainwright.core.secrets import without_secrets
from trainwright.errors import UsageError
from trainwright.output import announce, check_targets, progress, tell, write_all
from trainwright.rehearsal.request import PYTHON
from trainwright.report import terminal
from trainwright.seams.processes import position
from trainwright.seams.scripts.edited_files import standing_in
from trainwright.seams.source.places import show
from trainwright.start.program import Program
from trainwright.timing import date_of_now

if TYPE_CHECKING:
    from trainwright.options import Options
    from trainwright.rehearsal.record import Record

NOT_ISOLATED = (
    "The kernel isolates no process here: files that the script opens with Python's own calls were redirected; other writes, and "
    "commands, were refused as far as they are seen."
)
_WRITES = {"--json", "--html", "--diff", "--format", "--write-baseline"}


def check_program(
    program: Program,
    targets: dict[str, str],
    options: Options,
    *,
    train: bool = False,
    verify: bool = False,
    required: bool = False,
) -> int:
    """Check a program, show its report and write it to the targets; returns the exit status.

    Args:
        train: then let it train for real if no error was found.
        verify: check the fixes by a further run, of a copy.
        required: learning that was not shown is a failure.

    Raises:
        TrainwrightError: for a wrong command, and for frameworks that are too old.
    """
    check_targets(targets)
    prepare(program, options)
    known = read_baseline(options.baseline)
    is_first = (here := position()) is None or not here.rank
    with progress() if is_first else contextlib.nullcontext(lambda text: None) as say:
        from trainwright.runs import compare_ranks

        compared = compare_ranks(program, options, say) if here is not None else None
        if not is_first:  # the first of the processes speaks
            return 0
        report = without_known(judge_program(program, options, say, compared, verify=verify), known)
        trains = False
        if train:
            why_not = _why_not_trained(report, options.device)
            trains, report = not why_not, replace(report, message=f"{report.message} {why_not}".strip())
        typed = _command(program, options)
        report = replace(report, typed=None if trains else typed, command=_command_again(typed))
        say("")
        console = Console(stderr="-" in targets.values())
        terminal.show(report, console, verbose=options.verbose)
        is_unshown = report.verdict is not None and report.verdict.shown == Shown.NOT_SHOWN
        status = 0 if trains else exit_status(report) or int(required and is_unshown) or int(train)
        write_all(targets, report, status)
        if trains:
            console.print("The script now starts again, for real.")
    if not trains:
        return status
    if "-" in targets.values():  # standard output is the report's alone
        os.dup2(2, 1)
    return _train(program)


def prepare(program: Program, options: Options) -> None:
    """Announce a program, and let it find what its command line sets.

    Raises:
        UsageError: for wrong options, and where there is no script.
    """
    options.check()
    tell(program.said)
    announce(program.script)
    program.set_environment()
    _know_cells(program)
    if not program.module and not Path(program.script).is_file():
        raise UsageError(f"there is no file {program.script}; name an existing Python script.")


def judge_program(
    program: Program,
    options: Options,
    say: Callable[[str], None],
    compared: Record | None = None,
    *,
    verify: bool = False,
    copies: Mapping[str, str] | None = None,
) -> Report:
    """The report of a program's runs.

    Args:
        compared: what the processes of its training begin with; None: it is one.
        copies: texts in the place of its files, by their resolved paths; None: it runs as it is.
    """
    from trainwright.judging.report import judge_run
    from trainwright.rehearsal.run import BY_CTRL_C
    from trainwright.runs import CUT_OFF, open_runs

    began = time.monotonic()
    script = program.script if program.module else show(program.script)
    asked = Report(script=script, date=date_of_now())
    with open_runs(program, options, say) as running:

        def judge(record: Record) -> Report:
            if compared is not None:
                record.looks, record.remarks = [*compared.looks, *record.looks], (*record.remarks, *compared.remarks)
            return judge_run(asked, record, options, running.run_repaired)

        def judge_copy(copies: Mapping[str, str]) -> Report | str:
            record = running.run(copies, repairs=options.repair)
            if running.is_interrupted:
                return "the second check was interrupted"
            if record.ended.misuse:
                return record.ended.misuse
            with standing_in(copies):
                _know_cells(program)
                return judge(record)

        record = running.run(copies, repairs=options.repair)
        if record.ended.misuse:
            raise UsageError(record.ended.misuse)
        is_interrupted = running.is_interrupted or record.ended.hindrance == BY_CTRL_C
        if is_interrupted and not record.updates:
            raise KeyboardInterrupt
        with standing_in(copies or {}):
            report = judge(record)
        said = [CUT_OFF] if is_interrupted else []
        said += [report.message, NOT_ISOLATED if record.isolation == PYTHON else ""]
        report = replace(report, message=" ".join(filter(None, said)), seconds=time.monotonic() - began)
        if verify and report.findings and not is_interrupted:
            report = verify_fixes(report, judge_copy)
            _know_cells(program)
    here = position()
    return _said_of_one(report, str(here.world_size) if here is not None else program.processes)


def verify_fixes(report: Report, again: Callable[[Mapping[str, str]], Report | str]) -> Report:
    """The report with what a second check, of an edited copy, shows of its fixes; an error of ours there is told in it."""
    from trainwright.fixes.verify import mark_verified

    try:
        return mark_verified(report, again)
    except Exception as error:  # ours: what the first check has found stands
        own = f"the second check: {type(error).__name__}: {error}"
        return replace(report, internal_errors=(*report.internal_errors, own))


def _command(program: Program, options: Options) -> Command | None:
    """What was typed, without secrets; None: this process was started by no such command, or by a launcher, whose words it does not know."""
    given = sys.argv[2 : len(sys.argv) - len(program.typed)]
    if sys.argv[1:2] not in (["check"], ["run"]) or not program.typed or position() is not None:
        return None
    words = tuple(without_secrets([show(word) if word == program.script else word for word in program.typed]))
    python = ("python", "-m") if "-m" in given else ("python",) if program.typed[0] == program.script else ()
    parts = [part for one in given if one != "--" for part in (one.split("=", 1) if one.startswith("--") else [one])]
    real = () if program.script.endswith(".ipynb") else (*python, *words)
    return Command(options=tuple(parts), words=words, real=real, budget=options.budget)


def _command_again(command: Command | None) -> str:
    """The command that a page which is sent round shows: without the files that it writes; empty: none is known."""
    if command is None:
        return ""
    kept = [o for before, o in zip(("", *command.options), command.options, strict=False) if not {before, o} & _WRITES]
    return replace(command, options=tuple(kept)).again()


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


def _why_not_trained(report: Report, device: str) -> str:
    """Why a script is not run for real; empty if it is."""
    is_failed = any(stage.status == Status.FAILED for stage in report.stages)
    is_faulty = any(f.severity == Severity.ERROR for f in report.findings)
    if is_faulty or is_failed or report.is_interrupted or report.failure is not None:
        return "The script was not run for real: fix the findings above first."
    asked = report.redirected
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
