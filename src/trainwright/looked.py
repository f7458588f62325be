"""What the rules find in the facts that the close look has measured in the run itself."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from trainwright.core import Finding, Proof, Severity, Shown, Stage, Verdict
from trainwright.core.report import Report
from trainwright.core.rule import Rule, load_rules
from trainwright.core.trial import Outcome, Trial
from trainwright.options import Options
from trainwright.refuted import name_errors
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_rows import Looked
from trainwright.stages import SetupFacts

# What a look is not asked: it reads no data set and makes no short training.
FURTHEST = Stage.OPTIMIZER


def with_looks(reports: Sequence[Report], record: Record, options: Options) -> list[Report]:
    """The walk's reports; the first one with what the rules find in the trainings that were not walked."""
    first, *others = reports
    found, failed = judge_looks(_list_unwalked(reports, record))
    known = {(f.name, f.where) for report in reports for f in report.findings}
    new = [f for f in found if not options.ignores(f) and (f.name, f.where) not in known]
    errors = name_errors(new)
    verdict = Verdict(shown=Shown.BROKEN, why=errors) if errors and first.verdict is None else first.verdict
    internal = (*first.internal_errors, *failed)
    return [replace(first, findings=(*first.findings, *new), internal_errors=internal, verdict=verdict), *others]


def _list_unwalked(reports: Sequence[Report], record: Record) -> list[Looked]:
    """The looks at trainings that no report is of: a walked one begins at its report's line, or closest behind it.

    The end of the run is looked at unless a report explains an exception, which then is the run's.
    """
    is_told = any(_explains(report) for report in reports)
    looks = [look for look in record.looks if not (look.is_end and is_told)]
    if not any(run.status.through for run in reports[0].stages):
        return looks
    walked = set()
    for begins in (report.begins for report in reports):
        near = [
            t.where
            for t in record.trainings
            if begins and t.where and t.where.file == begins.file and t.where.line >= begins.line
        ]
        walked.add(min(near, key=lambda place: place.line, default=None))
    walked |= {training.where for training in record.trainings[: len(reports)]} if None in walked else set()
    others = {training.number for training in record.trainings if training.where not in walked}
    return [look for look in looks if look.training in others or look.is_end]


def _explains(report: Report) -> bool:
    """Whether an error was found of a stage that raised, or of a script that ended before its training."""
    is_before = not any(run.status.through for run in report.stages)
    return any(f.severity == Severity.ERROR and (f.is_of_exception or is_before) for f in report.findings)


def judge_looks(looks: Iterable[Looked]) -> tuple[list[Finding], list[str]]:
    """The first causes in some trainings, with the notes before them; and what failed in rules of ours.

    Behind the first stage with an error or a warning nothing more is said: it may be the consequence. Of what raised, the
    first error that can raise is the cause.
    """
    found: list[Finding] = []
    failed: list[str] = []
    rules = [rule for rule in load_rules() if rule.stage != Stage.REHEARSAL and rule.runs_at <= FURTHEST]
    for look in looks:
        ready = [rule for rule in rules if set(rule.needs) <= set(look.facts) and not (look.is_end and _is_idle(rule))]
        ready.sort(key=lambda rule: (rule.runs_at, rule.order))
        for _, of_stage in groupby(ready, key=lambda rule: rule.runs_at):
            of_look: list[Finding] = []
            for rule in of_stage:
                of_look += [_with_end(f, look) if look.is_end else f for f in _ask(rule, look, found, failed)]
                if look.is_end and of_look:
                    break
            known = {(f.name, f.where) for f in found}
            found += [f for f in of_look if f not in found and not (look.is_end and (f.name, f.where) in known)]
            if any(f.severity != Severity.NOTE for f in of_look):
                break
    return found, failed


def _is_idle(rule: Rule) -> bool:
    """Whether a fault ends no run."""
    return rule.residual or rule.severity != Severity.ERROR or not (rule.raises or rule.stage == Stage.SETUP)


def _with_end(finding: Finding, look: Looked) -> Finding:
    """A finding of what raised: without a line or a proof of its own, the exception gives it."""
    failure = getattr(look.facts[SetupFacts], "failure", None)
    where = finding.where or getattr(failure, "where", None)
    return replace(finding, where=where, proof=finding.proof or Proof(f"the call raised {failure}"))


def _ask(rule: Rule, look: Looked, found: list[Finding], failed: list[str]) -> Iterator[Finding]:
    """What a rule finds; a trial that it asks for is answered as one that could not be made."""
    if rule.residual and any(f.severity != Severity.NOTE for f in found):
        return
    try:
        answer = rule.function(**{name: look.facts.get(kind) for name, kind, _ in rule.parameters})
        sent: Outcome | None = None
        while answer is not None:
            try:
                item = answer.send(sent) if sent is not None else next(answer)  # type: ignore[union-attr]
            except StopIteration:
                return
            sent = None
            if isinstance(item, Finding):
                yield replace(item, code=rule.code, name=rule.name, severity=rule.severity_of(item))
            elif isinstance(item, Trial):
                sent = Outcome(changed=item.change.does, before=(), after=(), cut_off=True)
            else:
                return
    except Exception as error:  # a rule of ours is wrong: it must not end the user's check
        failed.append(f"rule {rule.code} {rule.name}: {''.join(traceback.format_exception_only(error)).strip()}")
