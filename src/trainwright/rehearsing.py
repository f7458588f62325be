"""The rehearsal of a check: beside the walk or after it, and what its review adds to the walk's reports."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from trainwright.core import Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.report import Report
from trainwright.options import Options
from trainwright.rehearsal.process import Rehearsal, can_run_beside
from trainwright.rehearsal.record import Record
from trainwright.review._review import review
from trainwright.review._sheet import sheet_of
from trainwright.review._verdict import is_behind_constant, verdict_of, verdicts
from trainwright.start.launchers import free_port
from trainwright.start.program import Program

# Once the walk has proven an error, the rehearsal may take this many more seconds to show what the error does.
SECONDS_BEHIND_ERROR = 10.0
# Findings that judge learning from the walk's short runs: they are said only where the rehearsal agrees.
_JUDGED_SHORTLY = frozenset(
    {
        *("unlearnable-batch", "worse-than-constant", "constant-predictions", "learns-nothing", "unrelated-labels"),
        *("few-distinct-rows", "lost-in-forward", "lost-in-preparation"),
    }
)
# Errors that end a run at its first batches: a run that went on refutes them.
_RAISED = frozenset({"label-out-of-range"})
# Errors of one step that a run whose weights get gradients and move refutes: the step that was walked is not the training's.
_UNREACHED = frozenset({"no-gradient", "constant-loss"})
# The question whose finding follows from an error that the walk has proven.
STOPPED = "script-stopped"
UNWALKED = "No training call or loop was found that can be walked: what is said here comes from the rehearsal alone."


class Rehearsing:
    """A rehearsal that is under way, or that waits for the walk's end."""

    def __init__(self, rehearsal: Rehearsal, seconds: float, *, beside: bool) -> None:
        self._rehearsal, self._seconds = rehearsal, seconds
        self._began = beside
        if beside:
            rehearsal.start()

    def finish(self, reports: Sequence[Report], say: Callable[[str], None]) -> Record:
        """Wait for its end; it is cut where the walk has proven an error."""
        if not self._began:
            self._rehearsal.start()
        is_proven = any(f.severity == Severity.ERROR for r in reports for f in r.findings)
        limit = time.monotonic() + (SECONDS_BEHIND_ERROR if is_proven else 3 * self._seconds)
        try:
            return self._rehearsal.wait(say, until=lambda: time.monotonic() >= limit)
        except KeyboardInterrupt:  # what was seen so far is reported
            self._rehearsal.end()
            return self._rehearsal.wait(say)


@contextlib.contextmanager
def rehearsing(program: Program, options: Options) -> Iterator[Rehearsing]:
    """Rehearse a program while the context lasts: beside the walk where that disturbs nothing, or in `finish`."""
    beside = can_run_beside()
    seconds = options.budget if beside else options.budget / 2
    environment = {}
    if "OMP_NUM_THREADS" not in os.environ:
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 2) // 2))
    if "MASTER_PORT" in program.environment:  # the walk's process may be listening on its own
        environment["MASTER_PORT"] = str(free_port())
    rehearsal = Rehearsal(
        program.script,
        program.arguments,
        module=program.module,
        device=options.device,
        seconds=seconds,
        environment=environment,
    )
    with contextlib.ExitStack() as stack:
        stack.push(rehearsal.__exit__)
        yield Rehearsing(rehearsal, seconds, beside=beside)


def add_review(reports: Sequence[Report], record: Record, options: Options) -> list[Report]:
    """The walk's reports, with what the rehearsal has shown: verdicts, findings, sheet and its stage.

    Findings that are silenced leave the verdict as it is.
    """
    found = review(record)
    of_trainings = [verdict for _, verdict in verdicts(record)]
    of_run: Verdict | None = verdict_of(record, found.findings)
    if not record.updates and of_run is not None and of_run.shown != Shown.BROKEN:
        of_run = None
    is_broken = of_run is not None and of_run.shown == Shown.BROKEN
    if len(reports) > 1 and len(of_trainings) == len(reports) and not is_broken:
        shown: list[Verdict | None] = [*of_trainings]
    else:  # the run as a whole stands behind the first training
        shown = [of_run]
    pairs = itertools.zip_longest(reports, shown)
    refuted = _refuted(record)
    is_sure = is_behind_constant(record)
    first, *others = (_with_verdict(report, verdict, refuted, is_sure) for report, verdict in pairs)
    if not first.walked and record.updates:
        first = replace(first, message=UNWALKED)
    is_explained = record.ended.failure is not None and any(f.severity == Severity.ERROR for f in first.findings)
    kept = tuple(f for f in found.findings if not options.ignores(f) and not (is_explained and f.name == STOPPED))
    first = replace(
        first,
        findings=(*first.findings, *kept),
        failure=first.failure or (None if is_explained else record.ended.failure),
        stages=(*first.stages, _stage(record, of_run)),
        internal_errors=(*first.internal_errors, *found.own_errors, *_own_errors(record)),
        sheet=sheet_of(record) if record.updates or record.losses else None,
    )
    return [first, *others]


def _with_verdict(report: Report, verdict: Verdict | None, refuted: frozenset[str], is_sure: bool) -> Report:
    """A walk's report with what the rehearsal says of its training; an error that the walk has proven stands.

    Args:
        refuted: the names of findings that the run has shown to be none.
        is_sure: whether the run shows that nothing was learned, as far as it was measured.
    """
    left_out = refuted | (_JUDGED_SHORTLY if _learns(verdict) else frozenset())
    findings = tuple(f for f in report.findings if f.name not in left_out)
    stages = tuple(_refuted_stage(run) if run.why in refuted else run for run in report.stages)
    report = replace(report, findings=findings, stages=stages)
    if verdict is None or any(f.severity == Severity.ERROR for f in findings):
        return report
    return replace(report, verdict=_chosen(report.verdict, verdict, is_sure))


def _refuted_stage(run: StageRun) -> StageRun:
    if run.status == Status.REPAIRED:
        return replace(run, status=Status.PASSED, why="")
    return (
        replace(run, status=Status.SKIPPED, why="the rehearsal's steps are others")
        if run.status == Status.FAILED
        else run
    )


def _refuted(record: Record) -> frozenset[str]:
    """The names of findings that the run has shown to be none."""
    if not record.updates or record.ended.failure is not None or record.ended.status:
        return frozenset()
    held = [one for one in record.parameters if one.is_held and one.is_trainable]
    trains = bool(held) and all(one.had_gradient and one.has_moved for one in held)
    return _RAISED | _UNREACHED if trains else _RAISED


def _own_errors(record: Record) -> tuple[str, ...]:
    return (f"the rehearsal: {record.ended.own_error}",) if record.ended.own_error else ()


def _learns(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.shown == Shown.LEARNS


def _chosen(walked: Verdict | None, rehearsed: Verdict, is_sure: bool) -> Verdict:
    """The verdict of the two that shows more: the rehearsal's, unless it could not tell and the walk could."""
    unclear = (Shown.NOT_SHOWN, Shown.CANNOT_BE_JUDGED)
    if is_sure and _learns(walked):
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
        status = Status.PASSED if _learns(verdict) else Status.UNSHOWN if record.updates else Status.SKIPPED
        cut = any(training.is_cut for training in record.trainings)
        further = (
            "then the time was over"
            if ended.is_cut
            else "cut short, then the script to its end"
            if cut
            else "the script to its end"
        )
    return StageRun(stage=Stage.REHEARSAL, status=status, why=f"{reached}; {further}", seconds=record.seconds)
