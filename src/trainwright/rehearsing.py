"""The rehearsal of a check: before the walk, beside it or after it, and what its review adds to the reports."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

from trainwright.causes import with_causes_first, with_known_remedy
from trainwright.core import Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.report import UNWALKED, Report
from trainwright.core.sheet import Sheet
from trainwright.fixes.edits import with_diffs
from trainwright.fixes.mended_copies import MendedCopies
from trainwright.looked import list_unwalked, with_looks, with_training
from trainwright.options import Options
from trainwright.refuted import learns, without_refuted
from trainwright.rehearsal.in_place import may_fork
from trainwright.rehearsal.process import Forking, Rehearsal
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_rows import Wanted
from trainwright.rehearsal.request import Work
from trainwright.rehearsal.run import INTERRUPTED
from trainwright.repaired import RunAgain, judge_repaired
from trainwright.review._marks import tell_marks
from trainwright.review._review import review
from trainwright.review._sheet import sheet_of
from trainwright.review._verdict import is_behind_constant, verdict_of, verdicts
from trainwright.seams.devices.release import hides_cause
from trainwright.seams.processes import position
from trainwright.start.launchers import free_port, variables_of_one
from trainwright.start.program import Program
from trainwright.walk.stage_runs import NO_EVALUATION_SET, UNSEEN_EVALUATION

# Once the walk has proven an error, the rehearsal may take this many more seconds to show what the error does.
SECONDS_BEHIND_ERROR = 10.0
# The question whose finding follows from an error that the walk has proven.
STOPPED = "script-stopped"
# How the sheet names an evaluation.
EVALUATED = "evaluated"
# A script that stops more often is not followed to its end.
MOST_COPIES = 6
CUT_OFF = "Interrupted: the report shows the results so far."
NOT_FORKED = (
    "The training was tried in this process, with weights, optimizer and random numbers put back afterwards: one that has begun "
    "to use a GPU cannot be copied."
)


class When(Enum):
    """When a rehearsal runs, seen from the walk."""

    BEFORE = auto()
    BESIDE = auto()
    AFTER = auto()


class Rehearsing:
    """A rehearsal that is over, under way, or that waits for the walk's end."""

    def __init__(self, rehearsal: Rehearsal, seconds: float, when: When, say: Callable[[str], None]) -> None:
        self._rehearsal, self._seconds = rehearsal, seconds
        self._began = when != When.AFTER
        self._record: Record | None = None
        self._repaired_until: float | None = None
        self.is_interrupted = False
        if self._began:
            rehearsal.start()
        if when == When.BEFORE:
            self._record = self._wait(say, 3 * seconds)

    def finish(self, reports: Sequence[Report], say: Callable[[str], None]) -> Record:
        """Wait for its end; it is cut where the walk has proven an error."""
        if self._record is not None:
            return self._record
        if any(report.is_interrupted for report in reports):
            if not self._began:
                return Record()
            self._rehearsal.end()
        if not self._began or self._rehearsal.is_out_of_memory:  # beside the walk it may need too much
            self._rehearsal.start()
        self._rehearsal.note_walked(sum(any(run.status.through for run in report.stages) for report in reports))
        # What fails in an evaluation may only fail where nothing was trained: the run shows whether it does.
        is_proven = any(
            f.severity == Severity.ERROR and f.stage < Stage.EVALUATION for r in reports for f in r.findings
        )
        record = self._wait(say, SECONDS_BEHIND_ERROR if is_proven else 3 * self._seconds)
        if record.ended.failure is not None and hides_cause(record.ended.failure.message):
            record = self._run_on_cpu(record, say)
        return record if record.ended.failure is None else self._run_copies(record, reports, say)

    def _run_on_cpu(self, record: Record, say: Callable[[str], None]) -> Record:
        """The record of a run on the CPU, which names the cause; the given one, of an accelerator, where that run has none."""
        self._rehearsal.start_again(device="cpu")
        again = self._wait(say, 2 * self._seconds)
        return again if again.ended.failure is not None else record

    def _run_copies(self, record: Record, reports: Sequence[Report], say: Callable[[str], None]) -> Record:
        """The record of a copy of the script that goes past the exceptions which ended it; the given one without any."""
        copies, limit = MendedCopies(reports), time.monotonic() + 2 * self._seconds
        is_changed = bool(copies.texts)
        if not copies.is_whole:
            return record
        for _ in range(MOST_COPIES):
            if record.ended.failure is None or not (is_changed or copies.go_past(record.ended.failure)):
                break
            is_changed = False
            self._rehearsal.start_again(copies.texts)
            again = self._wait(say, limit - time.monotonic())
            if again.updates < record.updates or again.ended.own_error or again.ended.hindrance or again.ended.status:
                break
            again.earlier, again.changed = [*record.earlier, record.ended], tuple(copies.changes)
            record = again
        return record

    def run_repaired(self, wanted: Sequence[Wanted], say: Callable[[str], None]) -> Record | None:
        """The record of a further run with repairs in force; None where there is no time for it."""
        self._repaired_until = self._repaired_until or time.monotonic() + self._seconds
        if (left := self._repaired_until - time.monotonic()) <= 0:
            return None
        self._rehearsal.start_again(repairs=wanted)
        return self._wait(say, left)

    def _wait(self, say: Callable[[str], None], seconds: float) -> Record:
        limit = time.monotonic() + seconds
        try:
            return self._rehearsal.wait(say, until=lambda: time.monotonic() >= limit)
        except KeyboardInterrupt:  # what was seen so far is reported
            self.is_interrupted = True
            self._rehearsal.end()
            return self._rehearsal.wait(say)


def choose_time(device: str) -> When:
    """When to rehearse: before the walk where both want the GPU, whose memory may not hold two; else beside it, where a
    second core is free."""
    if device != "cpu" and Path("/dev/nvidia0").exists():
        return When.BEFORE
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return When.BESIDE if cores > 1 else When.AFTER


@contextlib.contextmanager
def rehearsing(
    program: Program, options: Options, say: Callable[[str], None], copies: Mapping[str, str] | None = None
) -> Iterator[Rehearsing]:
    """Rehearse a program, at the latest when what is yielded is finished; its process ends with the context.

    Args:
        copies: texts in the place of files, by their resolved paths.
    """
    when = choose_time(options.device)
    seconds = options.budget if when == When.BESIDE else options.budget / 2
    environment = {}
    if "OMP_NUM_THREADS" not in os.environ:
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 2) // 2))
    if "MASTER_PORT" in program.environment:  # the walk's process may be listening on its own
        environment["MASTER_PORT"] = str(free_port())
    if position() is not None:  # a launcher's other processes are not rehearsed: this one would wait for them
        environment |= {**variables_of_one(), "TORCHELASTIC_USE_AGENT_STORE": "False"}
    rehearsal = Rehearsal(
        program.script,
        program.arguments,
        module=program.module,
        device=options.device,
        seconds=seconds,
        environment=environment,
        samples=options.samples,
        copies=copies or {},
    )
    with contextlib.ExitStack() as stack:
        stack.push(rehearsal.__exit__)
        yield Rehearsing(rehearsal, seconds, when, say)


def rehearse_work(
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
    began, is_forked = time.monotonic(), may_fork()
    rehearsal = Rehearsal(
        report.script,
        device=options.device,
        seconds=options.budget,
        seed=options.seed,
        server=Forking(work) if is_forked else None,
        samples=options.samples,
    )
    running: Rehearsing | None = None
    again: RunAgain | None = None
    with contextlib.ExitStack() as stack:
        stack.push(rehearsal.__exit__)
        if is_forked:
            running = Rehearsing(rehearsal, options.budget, When.BEFORE, say)
            record = running.finish([], say)
            again = functools.partial(running.run_repaired, say=say)
        else:
            with restoring:
                record = rehearsal.run_here(work)
        (judged,) = add_review([report], record, options, again)
    is_interrupted = record.ended.hindrance == INTERRUPTED or (running is not None and running.is_interrupted)
    message = CUT_OFF if is_interrupted else report.message if is_forked else NOT_FORKED
    return replace(judged, message=judged.message or message, seconds=time.monotonic() - began), record


def add_review(
    reports: Sequence[Report], record: Record, options: Options, run_again: RunAgain | None = None
) -> list[Report]:
    """The walk's reports, with what the rehearsal has shown: verdicts, findings, sheet and its stage.

    Findings that are silenced leave the verdict as it is.

    Args:
        run_again: runs the script with repairs in force; None: nothing is repaired.
    """
    if len(reports) == 1 and len(record.trainings) < 2:  # what may follow it in the code is no training
        reports = [replace(reports[0], training=None)]
    looks = [one for one in list_unwalked(reports, record) if one.is_end or options.training in (None, one.training)]
    reports = with_looks(reports, options, *judge_repaired(looks, record, run_again if options.repair else None))
    found, of_each = review(record), verdicts(record)
    of_trainings = [verdict for _, verdict in of_each]
    of_run: Verdict | None = verdict_of(record, found.findings)
    if options.training is not None:  # the questions are asked of the whole run
        found = found._replace(findings=())
        of_run = next((verdict for one, verdict in of_each if one.number == options.training), None)
    of_copy = verdict_of(replace(record, earlier=[]), found.findings) if record.changed else None
    if not record.updates and of_run is not None and of_run.shown != Shown.BROKEN:
        of_run = None
    is_broken = of_run is not None and of_run.shown == Shown.BROKEN
    if len(reports) > 1 and len(of_trainings) == len(reports) and not is_broken:
        shown: list[Verdict | None] = [*of_trainings]
    else:  # the run as a whole stands behind the first training
        shown = [of_run]
    is_sure = is_behind_constant(record)
    sheet = sheet_of(record, found.findings) if record.updates or record.losses else None
    judged = (
        _with_verdict(without_refuted(report, record, of_copy if learns(of_copy) else verdict), verdict, is_sure)
        for report, verdict in itertools.zip_longest(reports, shown)
    )
    # Rows that the run itself answered say more than the walk's.
    first, *others = (replace(one, samples=()) if sheet is not None and sheet.samples else one for one in judged)
    is_seen = record.updates or UNWALKED in first.message
    if is_seen and not first.is_interrupted and not any(run.status.through for run in first.stages):
        first = with_training(first, looks, record)
    if options.training is not None and options.training > len(record.trainings):
        first = replace(
            first, message=f"There is no training {options.training}: {len(record.trainings)} were reached."
        )
    ends = [one.failure for one in (*record.earlier, record.ended) if one.failure is not None]
    is_explained = bool(ends) and any(f.severity == Severity.ERROR for f in first.findings)
    said = {f.where for f in first.findings} | ({ends[0].where} if is_explained else set())
    stopped = (with_known_remedy(f, ends) if f.name == STOPPED else f for f in found.findings)
    kept = tuple(f for f in stopped if not options.ignores(f) and not (f.name == STOPPED and f.where in said))
    first = replace(
        first,
        findings=with_causes_first((*first.findings, *kept), is_of_copy=bool(record.changed)),
        failure=first.failure or (None if is_explained else record.ended.failure),
        message=f"{first.message} {_of_copy(of_copy, record, first.changed)}".strip()
        if of_copy is not None
        else first.message,
        stages=(*(_with_evaluation(run, sheet) for run in first.stages), _stage(record, of_run)),
        internal_errors=(*first.internal_errors, *found.own_errors, *_own_errors(record)),
        sheet=sheet,
    )
    return [with_diffs(_with_marks(first)), *others]


def _with_marks(report: Report) -> Report:
    """The report, whose verdict names what stands out on the sheet and no finding says."""
    if report.sheet is None or report.verdict is None or not learns(report.verdict):
        return report
    told = tell_marks(report.sheet, report.findings, report.begins)
    return replace(report, verdict=replace(report.verdict, look_at=told))


def _with_evaluation(run: StageRun, sheet: Sheet | None) -> StageRun:
    """The evaluation's row where the walk saw none: with those that the run made."""
    made = next((p for p in sheet.pieces if p.what == EVALUATED), None) if sheet is not None else None
    if made is None or run.why not in (UNSEEN_EVALUATION, NO_EVALUATION_SET):
        return run
    times = "once" if made.times == 1 else f"{made.times:,} times"
    at = f" at {made.where}" if made.where is not None else ""
    return replace(run, why=f"the rehearsal evaluated {times}{at}")


def _with_verdict(report: Report, verdict: Verdict | None, is_sure: bool) -> Report:
    """A walk's report with what the rehearsal says of its training; an error that the walk has proven stands.

    Args:
        is_sure: whether the run shows that nothing was learned, as far as it was measured.
    """
    if verdict is None or any(f.severity == Severity.ERROR for f in report.findings):
        return report
    return replace(report, verdict=_chosen(report.verdict, verdict, is_sure))


def _of_copy(verdict: Verdict, record: Record, walked: Sequence[str]) -> str:
    """What the copy showed that was rehearsed.

    Args:
        walked: what was changed in the copy that was walked, and is said already.
    """
    more = "; ".join(one for one in record.changed if one not in walked)
    which = f"That copy{f', with more changes ({more}),' if more else ''}" if walked else f"A copy ({more})"
    return f"{which} was rehearsed, and is judged by itself: {verdict.shown}; {verdict.why}."


def _own_errors(record: Record) -> tuple[str, ...]:
    own = (record.ended.own_error,) if record.ended.own_error else ()
    return tuple(f"the rehearsal: {error}" for error in (*own, *record.watcher_errors))


def _chosen(walked: Verdict | None, rehearsed: Verdict, is_sure: bool) -> Verdict:
    """The verdict of the two that shows more: the rehearsal's, unless it could not tell and the walk could."""
    unclear = (Shown.NOT_SHOWN, Shown.CANNOT_BE_JUDGED)
    if is_sure and learns(walked):
        return rehearsed
    if walked is not None and rehearsed.shown in unclear and walked.shown not in unclear:
        return walked
    return rehearsed


def _stage(record: Record, verdict: Verdict | None) -> StageRun:
    """The rehearsal's row among the stages."""
    ended = record.ended
    reached = f"{record.updates:,} updates" if record.updates else "no update was seen"
    if ended.own_error or ended.hindrance:
        status, further = Status.SKIPPED, ended.hindrance or "an error of ours ended it"
    elif ended.failure is not None:
        status, further = Status.FAILED, str(ended.failure)
    elif ended.status:
        status, further = Status.FAILED, f"its process ended with status {ended.status}"
    else:
        status = (
            Status.REPAIRED
            if record.changed
            else Status.PASSED
            if learns(verdict)
            else Status.UNSHOWN
            if record.updates
            else Status.SKIPPED
        )
        cut = any(training.is_cut for training in record.trainings)
        further = (
            "then the time was over"
            if ended.is_cut
            else "cut short, then the script to its end"
            if cut
            else "the script to its end"
        )
        changed = len(record.changed)
        further += f", in a copy with {changed} line{'' if changed == 1 else 's'} changed" if changed else ""
    return StageRun(stage=Stage.REHEARSAL, status=status, why=f"{reached}; {further}", seconds=record.seconds)
