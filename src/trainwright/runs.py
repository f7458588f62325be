"""The runs of a check: as the script is, past what stops it, with repairs in force."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainwright.core import Report
from trainwright.fixes.mended_copies import MendedCopies
from trainwright.judging.repaired import is_mendable
from trainwright.judging.report import judge_run
from trainwright.look.asking import Wanted
from trainwright.options import Options
from trainwright.rehearsal.in_place import has_computed_elsewhere, may_fork
from trainwright.rehearsal.process import Forking, Rehearsal
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.request import Work
from trainwright.rehearsal.run import BY_CTRL_C
from trainwright.seams.devices.memory_owners import hides_cause
from trainwright.seams.processes import Exchange, position, starter
from trainwright.start.launchers import variables_of_one
from trainwright.start.program import Program

# A script may take so long until its training begins.
START_SECONDS = 1_800.0
# A script that stops more often is not followed to its end.
MOST_COPIES = 6
CUT_OFF = "Interrupted: the report shows the results so far."
NOT_FORKED = (
    "The training was tried in this process, with weights, optimizer and random numbers put back afterwards: one that has begun "
    "to use a GPU, TensorFlow or JAX cannot be copied."
)


class Runs:
    """A check's runs of a script: as it is, of copies that go past what stops it, and with repairs in force.

    Args:
        seconds: of the first run, from its first update on.
    """

    def __init__(self, rehearsal: Rehearsal, seconds: float, say: Callable[[str], None]) -> None:
        self._rehearsal, self._seconds, self._say = rehearsal, seconds, say
        self._repaired_until: float | None = None
        self._copies: MendedCopies | None = None
        """Of the files in the run before; None: nothing of the script may be changed."""
        self.is_interrupted = False

    def run(
        self, copies: Mapping[str, str] | None = None, *, repairs: bool = True, patience: float = START_SECONDS
    ) -> Record:
        """Run the script as it is, and where an exception ended it that no repair is known for, copies that go past it.

        Args:
            copies: texts in the place of its files, by their resolved paths, in a further run; None: this is the first.
            repairs: whether anything of the script may be changed.
            patience: seconds that it may take until its training begins.
        """
        start = self._rehearsal.start if copies is None else lambda: self._rehearsal.start_again(copies)
        self._repaired_until, self._copies = None, MendedCopies(copies or {}) if repairs else None
        record = self._run(start, 3 * self._seconds, patience=patience)
        if record.ended.failure is not None and hides_cause(record.ended.failure.message):
            record = self._run_on_cpu(record)
        return self._go_past(record, time.monotonic() + 2 * self._seconds)

    def _run_on_cpu(self, record: Record) -> Record:
        """The record of a run on the CPU, which names the cause; the given one, of an accelerator, where that run has none."""
        again = self._run(lambda: self._rehearsal.start_again(device="cpu"), 2 * self._seconds)
        return again if again.ended.failure is not None else record

    def _go_past(
        self, record: Record, until: float, repairs: Sequence[Wanted] = (), seconds: float | None = None
    ) -> Record:
        """The record of a copy of the script that goes past the exceptions which ended it; the given one without any.

        Args:
            repairs: were in force when it was recorded, and are in force in the copy.
            seconds: of a copy's run, from its first update on; None: as before.
        """
        copies = self._copies
        for _ in range(MOST_COPIES):
            failure, left = record.ended.failure, until - time.monotonic()
            if copies is None or failure is None or left <= 0 or self.is_interrupted or is_mendable(record):
                break
            before = dict(copies.texts), list(copies.changes)
            if not copies.go_past(failure):
                break
            start = functools.partial(self._rehearsal.start_again, copies.texts, repairs, seconds=seconds)
            again = self._run(start, left)
            ended = again.ended
            is_less = again.updates < record.updates or (ended.is_cut and not again.updates)
            if is_less or ended.own_error or ended.hindrance or ended.status:
                copies.texts, copies.changes = before
                break
            again.earlier, again.changed = [*record.earlier, record.ended], tuple(copies.changes)
            again.passed = [*record.passed, *(one for one in record.looks if one.is_end)]
            record = again
        return record

    def run_repaired(self, wanted: Sequence[Wanted]) -> Record | None:
        """The record of a further run with repairs in force, past what stops it; None where there is no time for it."""
        self._repaired_until = self._repaired_until or time.monotonic() + self._seconds
        if (left := self._repaired_until - time.monotonic()) <= 0 or self.is_interrupted:
            return None
        # A third of what is left trains: there is to be time for what lies behind this fault.
        copies = self._copies.texts if self._copies is not None else None
        record = self._run(lambda: self._rehearsal.start_again(copies, wanted, seconds=left / 3), left)
        record.changed = tuple(self._copies.changes) if self._copies is not None else ()
        return self._go_past(record, self._repaired_until, wanted, left / 3)

    def _run(self, start: Callable[[], None], seconds: float, *, patience: float = 0.0) -> Record:
        """The record of a run, which is ended after so many seconds, or later where no training has begun.

        Args:
            patience: seconds that the script may take until then.
        """
        began = time.monotonic()

        def is_over() -> bool:
            most = seconds if self._rehearsal.progress.began is not None else max(seconds, patience)
            return time.monotonic() - began >= most

        try:
            start()
            return self._rehearsal.wait(self._say, until=is_over)
        except KeyboardInterrupt:  # what was seen so far is reported
            self.is_interrupted = True
            self._rehearsal.end()
            return self._rehearsal.wait(self._say)


@contextlib.contextmanager
def open_runs(program: Program, options: Options, say: Callable[[str], None]) -> Iterator[Runs]:
    """A program's runs; their process ends with the context."""
    alone = {**variables_of_one(), "TORCHELASTIC_USE_AGENT_STORE": "False"}
    rehearsal = Rehearsal(
        program.script,
        program.arguments,
        module=program.module,
        device=options.device,
        seconds=options.budget,
        environment=alone
        if position() is not None
        else {},  # a launcher's other processes are not run: it would wait for them
        samples=options.samples,
    )
    with contextlib.ExitStack() as stack:
        stack.push(rehearsal.__exit__)
        yield Runs(rehearsal, options.budget, say)


def compare_ranks(program: Program, options: Options, say: Callable[[str], None]) -> Record:
    """What this process and the launcher's other ones begin to train with: of the first of them, compared."""
    limit, exchange = time.monotonic() + options.budget, Exchange(starter()).folder
    exchange.mkdir(mode=0o700, exist_ok=True)  # what is written there lasts, in a process that is isolated
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_empty, exchange)
        rehearsal = stack.enter_context(
            Rehearsal(
                program.script,
                program.arguments,
                module=program.module,
                device=options.device,
                seconds=options.budget,
                starter=starter(),
            )
        )
        return rehearsal.wait(say, until=lambda: time.monotonic() >= limit)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it holds what other processes have put there
        folder.rmdir()


def run_work(
    report: Report,
    work: Work,
    options: Options,
    say: Callable[[str], None],
    restoring: contextlib.AbstractContextManager[Any],
) -> tuple[Report, Record]:
    """A report of a run of what this process holds, in forks of it, and the record.

    Args:
        report: says what is run.
        restoring: puts the objects back that the run has changed, where this process may not fork.
    """
    began, is_forked = time.monotonic(), may_fork() and not has_computed_elsewhere()
    rehearsal = Rehearsal(
        report.script,
        device=options.device,
        seconds=options.budget,
        seed=options.seed,
        server=Forking(work) if is_forked else None,
        samples=options.samples,
    )
    running = Runs(rehearsal, options.budget, say)
    with contextlib.ExitStack() as stack:
        stack.push(rehearsal.__exit__)
        if is_forked:
            record = running.run(repairs=False)
        else:
            with restoring:
                record = rehearsal.run_here(work)
        told = judge_run(report, record, options, running.run_repaired if is_forked else None)
    is_interrupted = record.ended.hindrance == BY_CTRL_C or running.is_interrupted
    message = CUT_OFF if is_interrupted else report.message if is_forked else NOT_FORKED
    return replace(told, message=told.message or message, seconds=time.monotonic() - began), record
