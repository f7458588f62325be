"""The report of a run: findings with causes first, verdict, sheet and stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainwright.core import Failure, Finding, Place, Report, Severity, Shown, Stage, StageRun, Status, Verdict
from trainwright.core.finding import failure_in
from trainwright.core.sheet import Sheet
from trainwright.fixes.edits import with_diffs
from trainwright.judging.causes import with_known_remedy, with_outcome_explained
from trainwright.judging.library_warnings import judge_warnings, with_warnings
from trainwright.judging.looks import UNSEEN_EVALUATION, judge_looks, with_training
from trainwright.judging.refuted import learns, name_errors, without_refuted
from trainwright.judging.repaired import Repaired, RunAgain, judge_repaired
from trainwright.options import Options
from trainwright.rehearsal.record import Record
from trainwright.review.consequences import RESULTS
from trainwright.review.marks import tell_marks
from trainwright.review.review import review
from trainwright.review.sheet import sheet_of
from trainwright.review.verdict import verdict_of, verdicts
from trainwright.stages import BatchFacts

# The question whose finding follows from an error that is proven.
STOPPED = "script-stopped"
# How the sheet names an evaluation.
EVALUATED = "evaluated"
# How the script of a further run differs.
MENDED = "with the faults above fixed in memory"


def judge_run(report: Report, record: Record, options: Options, run_again: RunAgain | None = None) -> Report:
    """The report of a run: findings, verdict, sheet and stages. Findings that are silenced leave the verdict as it is.

    Args:
        report: says what was run.
        run_again: runs the script with repairs in force; None: nothing is repaired.
    """
    looks = [one for one in record.looks if one.is_end or options.training in (None, one.training)]
    repaired = judge_repaired(looks, record, run_again if options.repair else None)
    report = replace(
        report,
        versions=record.versions or report.versions,
        start_seconds=record.start_seconds,
        redirected=record.redirected,
        kept_away=record.kept_away,
        message=" ".join(filter(None, (tell_unreached(record), *record.remarks, report.message))),
    )
    found, of_each = review(record), verdicts(record)
    of_run: Verdict | None = verdict_of(record, found.findings)
    if options.training is not None:  # the questions are asked of the whole run
        found = found._replace(findings=())
        of_run = next((verdict for one, verdict in of_each if one.number == options.training), None)
    # A script that made no update is shown as far as the last run with repairs in force came.
    last, names = repaired.runs[-1] if repaired.runs else (record, ())
    shown = last if last.updates and not record.updates else record
    asked = found if shown is record else review(shown)
    of_copy = verdict_of(replace(shown, earlier=[]), asked.findings) if shown.changed or shown is not record else None
    if of_copy is not None and shown is not record and shown.is_cut and of_copy.shown == Shown.DOES_NOT_LEARN:
        of_copy = Verdict(shown=Shown.NOT_SHOWN, why=f"{of_copy.why.rstrip('.')}; it was ended before its plan was run")
    if not record.updates and of_run is not None and of_run.shown != Shown.BROKEN:
        of_run = None
    sheet = sheet_of(shown, asked.findings) if shown.updates or shown.losses else None
    # What is seen to learn needs no trial.
    untried = [] if learns(of_run) else dict.fromkeys(one.untried for one in looks if one.untried)
    is_refuting = shown is record and learns(of_copy)  # what was mended in memory is refuted by no run
    of_last = [f for f in repaired.findings if names and f.after_repair == names]
    left = without_refuted(
        [f for f in repaired.findings if f not in of_last], record, of_copy if is_refuting else of_run
    )
    left += without_refuted(of_last, last, verdict_of(replace(last, earlier=[]), ()))
    named = name_errors(left := [f for f in left if not options.ignores(f)])
    report = replace(
        report,
        findings=tuple(left),
        verdict=Verdict(shown=Shown.BROKEN, why=named) if named else of_run,
    )
    report = with_training(report, looks if shown is record else [*looks, *shown.looks], shown)
    if options.training is not None and options.training > len(record.trainings):
        none = f"There is no training {options.training}: {len(record.trainings)} were reached."
        report = replace(report, message=none)
    ends = [one.failure for one in (*record.earlier, record.ended) if one.failure is not None]
    is_explained = bool(ends) and any(f.severity == Severity.ERROR for f in report.findings)
    said = {f.where for f in report.findings} | (
        _explained(report.findings, record, ends) or {ends[0].where} if is_explained else set()
    )
    stopped = (with_known_remedy(f, ends) if f.name == STOPPED else f for f in found.findings)
    kept = tuple(f for f in stopped if not options.ignores(f) and not (f.name == STOPPED and f.where in said))
    behind = _behind_repairs(repaired, left, kept, is_asked=shown is last) if options.training is None else []
    joined = [*report.findings, *(f for f in behind if not options.ignores(f)), *kept]
    names = names if shown is last else ()
    sheet = replace(sheet, mended=MENDED) if sheet is not None and names else sheet
    copied = "" if of_copy is None else _of_copy(of_copy, shown, names)
    report = replace(
        report,
        findings=with_outcome_explained(
            sorted(joined, key=lambda f: len(f.after_repair)), is_of_copy=of_copy is not None
        ),
        failure=None if is_explained else record.ended.failure,
        message=" ".join(filter(None, (report.message, copied, *untried))),
        stages=(
            *(_with_evaluation(run, sheet) for run in report.stages),
            _stage(shown, of_run, names),
        ),
        internal_errors=(*repaired.own_errors, *found.own_errors, *_own_errors(record)),
        sheet=sheet,
    )
    return with_diffs(with_warnings(_with_marks(report), judge_warnings(record.warnings)))


def _behind_repairs(
    repaired: Repaired, findings: Sequence[Finding], kept: Sequence[Finding], *, is_asked: bool
) -> list[Finding]:
    """What stops the runs with repairs in force; not where a finding explains it, or says the same.

    Args:
        kept: what the questions find in the run without them.
        is_asked: the last of these runs is asked all questions.
    """
    behind: list[Finding] = []
    for record, names in repaired.runs:
        ends = [one.failure for one in (*record.earlier, record.ended) if one.failure is not None]
        said = {f.where for f in findings} | _explained(findings, record, ends)
        is_last = is_asked and record is repaired.runs[-1].record
        asked = [f for f in review(record).findings if is_last or f.name == STOPPED]
        if record.is_cut:  # it had a part of the time: what it has not learned yet says nothing
            asked = [f for f in asked if f.name not in RESULTS]
        known = {(f.name, f.where) for f in (*kept, *behind)}
        new = [f for f in asked if (f.name, f.where) not in known and not (f.name == STOPPED and f.where in said)]
        stopped = (with_known_remedy(f, ends) if f.name == STOPPED else f for f in new)
        behind += [replace(f, after_repair=names) for f in stopped]
    return behind


def _explained(findings: Sequence[Finding], record: Record, ends: Sequence[Failure]) -> set[Place | None]:
    """Where the script stopped with what its errors explain: at those ends in whose facts one is found."""
    errors = [(f.name, f.where) for f in findings if f.severity == Severity.ERROR]
    found: set[Place | None] = set()
    for look in (*record.passed, *(one for one in record.looks if one.is_end)):
        failure = failure_in(look.facts.values())
        if failure is not None and any((f.name, f.where) in errors for f in judge_looks([look])[0]):
            found.add(failure.where)
    return found & {end.where for end in ends}


def tell_unreached(record: Record) -> str:
    """Why nothing was checked, if no training was reached."""
    ended = record.ended
    is_in_step = any(BatchFacts in one.facts for one in record.looks)  # the first one, which raised
    if record.updates or record.trainings or is_in_step or (record.looks and ended.failure is None):
        return ""
    if ended.own_error or ended.hindrance:
        return (
            "" if not ended.hindrance else nothing_checked(f"The script did not reach its training: {ended.hindrance}")
        )
    if ended.failure is not None:
        return "The script ended before it reached training."
    if ended.status:
        return nothing_checked(f"The script ended its process with status {ended.status} before its check was over")
    if ended.is_cut:
        return (
            "The script made no first update within its time, so nothing was checked. A larger --budget gives it more."
        )
    return nothing_checked("The script ended without reaching a training call or loop that Trainwright recognizes")


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


def _of_copy(verdict: Verdict, record: Record, names: Sequence[str]) -> str:
    """What a run showed that goes past what stopped the script.

    Args:
        names: the rules whose repairs were in force in it.
    """
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


def _stage(record: Record, verdict: Verdict | None, names: Sequence[str]) -> StageRun:
    """The rehearsal's row among the stages.

    Args:
        names: the rules whose repairs were in force.
    """
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
            if record.changed or names
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
    mended = f", {MENDED}" if names else ""
    return StageRun(stage=Stage.REHEARSAL, status=status, why=f"{reached}; {further}{mended}", seconds=record.seconds)
