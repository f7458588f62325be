"""The report of a run: findings with causes first, verdict, sheet and stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainwright.core import Finding, Place, Report, Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.finding import failure_in
from trainwright.core.sheet import Sheet
from trainwright.fixes.edits import with_diffs
from trainwright.judging.causes import with_known_remedy, with_outcome_explained
from trainwright.judging.library_warnings import judge_warnings, with_warnings
from trainwright.judging.looks import UNSEEN_EVALUATION, judge_looks, with_training
from trainwright.judging.refuted import learns, name_errors, without_refuted
from trainwright.judging.repaired import JudgedRun, Repaired, RunAgain, judge_repaired
from trainwright.options import Options
from trainwright.rehearsal.record import Record
from trainwright.review.consequences import RESULTS
from trainwright.review.marks import tell_marks
from trainwright.review.sheet import sheet_of
from trainwright.review.verdict import verdict_of, verdicts
from trainwright.stages import BatchFacts

# The question whose finding follows from an error that is proven.
STOPPED = "script-stopped"
# How the sheet names an evaluation.
EVALUATED = "evaluated"
# How the script of a further run differs.
MENDED = "with the faults above fixed in memory"


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What the run of the script as it is came to, and the run that is shown in its place."""

    run: JudgedRun
    last: JudgedRun
    """The last with repairs in force; the run itself, if there is none."""
    shown: JudgedRun
    """Of a script that made no update, the last; otherwise the run itself."""
    found: Sequence[Finding]
    """What the questions find in the run."""
    of_run: Verdict | None
    of_copy: Verdict | None
    """Of the one that is shown, if it is not the script as it is."""

    @property
    def sheet(self) -> Sheet | None:
        """Of the run that is shown."""
        record, found = self.shown.record, self.found if self.shown is self.run else self.shown.asked.findings
        sheet = sheet_of(record, found) if record.updates or record.losses else None
        return replace(sheet, mended=MENDED) if sheet is not None and self.shown.names else sheet


def judge_run(report: Report, record: Record, options: Options, run_again: RunAgain | None = None) -> Report:
    """The report of a run: findings, verdict, sheet and stages. Findings that are silenced leave the verdict as it is.

    Args:
        report: says what was run.
        run_again: runs the script with repairs in force; None: nothing is repaired.
    """
    looks = [one for one in record.looks if one.is_end or options.training in (None, one.training)]
    run = JudgedRun(record)
    repaired = judge_repaired(looks, run, run_again if options.repair else None)
    seen = _choose_shown(run, repaired, options)
    proven = [f for f in _leave_unrefuted(repaired, seen) if not options.ignores(f)]
    named, shown = name_errors(proven), seen.shown
    report = replace(
        _with_run(report, record, options),
        findings=tuple(proven),
        verdict=Verdict(shown=Shown.BROKEN, why=named) if named else seen.of_run,
    )
    report = with_training(report, looks if shown is run else [*looks, *shown.record.looks], shown.record)
    is_explained = bool(run.ends) and any(f.severity == Severity.ERROR for f in proven)
    explained = _explained(proven, run) or ({run.ends[0].where} if is_explained else set())
    kept = [f for f in _tell_anew(run, seen.found, proven, explained) if not options.ignores(f)]
    behind = _behind_repairs(repaired, proven, kept, is_asked=shown is seen.last) if options.training is None else []
    joined = sorted([*proven, *(f for f in behind if not options.ignores(f)), *kept], key=lambda f: len(f.after_repair))
    # What is seen to learn needs no trial.
    untried = [] if learns(seen.of_run) else dict.fromkeys(one.untried for one in looks if one.untried)
    copied, sheet = "" if seen.of_copy is None else _of_copy(seen.of_copy, shown), seen.sheet
    report = replace(
        report,
        findings=with_outcome_explained(joined, is_of_copy=seen.of_copy is not None),
        failure=None if is_explained else record.ended.failure,
        message=" ".join(filter(None, (report.message, copied, *untried))),
        stages=(*(_with_evaluation(one, sheet) for one in report.stages), _stage(shown, seen.of_run)),
        internal_errors=(*repaired.own_errors, *run.asked.own_errors, *_own_errors(record)),
        sheet=sheet,
    )
    return with_diffs(with_warnings(_with_marks(report), judge_warnings(record.warnings)))


def _with_run(report: Report, record: Record, options: Options) -> Report:
    """The report, with what is known of the process that ran."""
    message = " ".join(filter(None, (tell_unreached(record), *record.remarks, report.message)))
    if options.training is not None and options.training > len(record.trainings):
        message = f"There is no training {options.training}: {len(record.trainings)} were reached."
    return replace(
        report,
        versions=record.versions or report.versions,
        start_seconds=record.start_seconds,
        redirected=record.redirected,
        kept_away=record.kept_away,
        message=message,
    )


def _choose_shown(run: JudgedRun, repaired: Repaired, options: Options) -> _Seen:
    """Judge the run, and the last with repairs in force where that is shown in its place."""
    found: Sequence[Finding] = run.asked.findings if options.training is None else ()  # asked of the whole run
    number = options.training
    of_run = run.verdict if number is None else {t.number: of for t, of in verdicts(run.record)}.get(number)
    last = repaired.runs[-1] if repaired.runs else run
    shown = last if last.record.updates and not run.record.updates else run
    of_copy: Verdict | None = None
    if shown.record.changed or shown is not run:
        asked = found if shown is run else shown.asked.findings
        of_copy = verdict_of(replace(shown.record, earlier=[]), asked)
        if shown is not run and shown.record.is_cut and of_copy.shown == Shown.DOES_NOT_LEARN:
            why = f"{of_copy.why.rstrip('.')}; it was ended before its plan was run"
            of_copy = Verdict(shown=Shown.NOT_SHOWN, why=why)
    is_judged = run.record.updates or (of_run is not None and of_run.shown == Shown.BROKEN)
    return _Seen(run=run, last=last, shown=shown, found=found, of_run=of_run if is_judged else None, of_copy=of_copy)


def _leave_unrefuted(repaired: Repaired, seen: _Seen) -> list[Finding]:
    """What rules find, but for what a run refutes: of what lies behind all repairs, the last one."""
    last = seen.last
    of_last = [f for f in repaired.findings if last.names and f.after_repair == last.names]
    # What was mended in memory is refuted by no run.
    verdict = seen.of_copy if seen.shown is seen.run and learns(seen.of_copy) else seen.of_run
    left = without_refuted([f for f in repaired.findings if f not in of_last], seen.run.record, verdict)
    if of_last:
        left += without_refuted(of_last, last.record, verdict_of(replace(last.record, earlier=[]), ()))
    return left


def _behind_repairs(
    repaired: Repaired, proven: Sequence[Finding], kept: Sequence[Finding], *, is_asked: bool
) -> list[Finding]:
    """What stops the runs with repairs in force; not where a finding explains it, or says the same.

    Args:
        kept: what the questions find in the run without them.
        is_asked: the last of these runs is asked all questions.
    """
    behind: list[Finding] = []
    for run in repaired.runs:
        is_last = is_asked and run is repaired.runs[-1]
        asked = [f for f in run.asked.findings if is_last or f.name == STOPPED]
        if run.record.is_cut:  # it had a part of the time: what it has not learned yet says nothing
            asked = [f for f in asked if f.name not in RESULTS]
        known = {(f.name, f.where) for f in (*kept, *behind)}
        new = [f for f in asked if (f.name, f.where) not in known]
        told = _tell_anew(run, new, proven, _explained(proven, run))
        behind += [replace(f, after_repair=run.names) for f in told]
    return behind


def _tell_anew(
    run: JudgedRun, findings: Sequence[Finding], proven: Sequence[Finding], explained: set[Place | None]
) -> list[Finding]:
    """Findings of questions, but for a stop that something proven names or explains, with what is known of its message."""
    said = explained | {f.where for f in proven}
    left = (f for f in findings if not (f.name == STOPPED and f.where in said))
    return [with_known_remedy(f, run.ends) if f.name == STOPPED else f for f in left]


def _explained(proven: Sequence[Finding], run: JudgedRun) -> set[Place | None]:
    """Where a run stopped with what its errors explain: at those ends in whose facts one is found."""
    errors = [(f.name, f.where) for f in proven if f.severity == Severity.ERROR]
    found: set[Place | None] = set()
    for look in (*run.record.passed, *(one for one in run.record.looks if one.is_end)):
        failure = failure_in(look.facts.values())
        if failure is not None and any((f.name, f.where) in errors for f in judge_looks([look])[0]):
            found.add(failure.where)
    return found & {end.where for end in run.ends}


def tell_unreached(record: Record) -> str:
    """Why nothing was checked, if no training was reached."""
    ended = record.ended
    printed = f" (it printed: {ended.printed})" if ended.printed else ""
    is_in_step = any(BatchFacts in one.facts for one in record.looks)  # the first one, which raised
    if record.updates or record.trainings or is_in_step or (record.looks and ended.failure is None):
        return ""
    if ended.own_error or ended.hindrance:
        hindered = f"The script did not reach its training: {ended.hindrance}{printed}"
        return nothing_checked(hindered) if ended.hindrance else ""
    if ended.failure is not None:
        return "The script ended before it reached training."
    if ended.status:
        return nothing_checked(
            f"The script ended its process with status {ended.status}{printed} before its check was over"
        )
    if ended.is_cut:
        return (
            "The script made no first update within its time, so nothing was checked. A larger --budget gives it more."
        )
    return nothing_checked(
        f"The script ended without reaching a training call or loop that Trainwright recognizes{printed}"
    )


def nothing_checked(ended: str) -> str:
    """The message on a script that trained nothing.

    Args:
        ended: how it ended instead, without a full stop.
    """
    return (
        f"{ended}, so nothing was checked. A check needs a script that calls train() or fit(), or that has "
        "a loop of its own with backward() and step(), or with gradients of JAX: name that script, with the arguments with which it trains."
    )


def _with_marks(report: Report) -> Report:
    """The report, whose verdict names what stands out on the sheet and no finding says."""
    if report.sheet is None or report.verdict is None or not learns(report.verdict):
        return report
    told = tell_marks(report.sheet, report.findings, report.begins)
    return replace(report, verdict=replace(report.verdict, look_at=told))


def _with_evaluation(run: StageRun, sheet: Sheet | None) -> StageRun:
    """The evaluation's row where the looks saw none: with those that the run made."""
    made = next((p for p in sheet.pieces if p.what == EVALUATED), None) if sheet is not None else None
    if made is None or run.why != UNSEEN_EVALUATION:
        return run
    times = "once" if made.times == 1 else f"{made.times:,} times"
    at = f" at {made.where}" if made.where is not None else ""
    return replace(run, why=f"the rehearsal evaluated {times}{at}")


def _of_copy(verdict: Verdict, run: JudgedRun) -> str:
    """What a run showed that goes past what stopped the script."""
    record, names = run.record, run.names
    copy = f"copy ({'; '.join(record.changed)})"
    if names:
        mended = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        ran = f"With {mended} fixed in memory, {f'a {copy}' if record.changed else 'the script'} was run again"
    else:
        ran = f"A {copy} was rehearsed"
    return f"{ran}, and is judged by itself: {verdict.shown}; {verdict.why.rstrip('.')}."


def _own_errors(record: Record) -> tuple[str, ...]:
    own = (record.ended.own_error,) if record.ended.own_error else ()
    return tuple(f"the rehearsal: {error}" for error in (*own, *record.watcher_errors))


def _stage(run: JudgedRun, verdict: Verdict | None) -> StageRun:
    """The rehearsal's row among the stages."""
    record, ended = run.record, run.record.ended
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
            if record.changed or run.names
            else Status.PASSED
            if learns(verdict)
            else Status.UNSHOWN
            if record.updates
            else Status.SKIPPED
        )
        further = (
            "then the time was over"
            if ended.is_cut
            else "cut short, then the script to its end"
            if record.is_cut
            else "the script to its end"
        )
        changed = len(record.changed)
        further += f", in a copy with {changed} line{'' if changed == 1 else 's'} changed" if changed else ""
    mended = f", {MENDED}" if run.names else ""
    return StageRun(stage=Stage.REHEARSAL, status=status, why=f"{reached}; {further}{mended}", seconds=record.seconds)
