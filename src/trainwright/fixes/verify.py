"""Verifies fixes: applies their edits to a copy of the source and checks the copy.

A repair in memory shows what is wrong; only the edited copy shows that the fix works as written. All edits of a report
are applied to one copy, so a single further run verifies every fix. The copy is kept in memory and replaces the script
(seams/scripts/edited_files.py): no file is written next to it, and all paths, arguments and lines are the script's own.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trainwright.core import Finding, Report, Rule, Severity, Shown, Stage
from trainwright.fixes.edits import edit_files, edits_of, fitting
from trainwright.registry import load_rules

CheckAgain = Callable[[Mapping[str, str]], Report | str]
"""Checks with the given texts in place of files, by resolved path; returns the report, or why there is none."""


def mark_verified(report: Report, again: CheckAgain) -> Report:
    """The report, with each fix marked as verified whose finding is gone in a check of an edited copy.

    No fix is marked if that check found anything else broken. The message summarizes that check.
    """
    chosen = fitting(report)
    if not chosen:
        return _saying(report, "None of these fixes can be written as an edit, so there is no edited copy to check.")
    files = edit_files(edits_of(chosen)) or {}
    second = again({str(Path(file).resolve()): after for file, (_, after) in files.items()})
    if isinstance(second, str):
        return _saying(report, f"No fix could be verified on an edited copy: {second}.")
    moved = {file: _moved(before, after) for file, (before, after) in files.items()}
    left = _left(report, second, chosen, moved)
    if broken := _broken(report, second, left):
        return _saying(report, f"No fix is verified: with all edits applied, a second check {broken}.")
    against = {id(f): _against(f, second, left) for f in chosen}
    findings = tuple(
        replace(f, fix=replace(f.fix, verified=True)) if f.fix and against.get(id(f)) == "" else f
        for f in report.findings
    )
    return _saying(replace(report, findings=findings), _told(chosen, against, second, left, report))


def _saying(report: Report, text: str) -> Report:
    return replace(report, message=f"{report.message} {text}".strip())


def _told(
    chosen: Sequence[Finding], against: Mapping[int, str], second: Report, left: Sequence[Finding], report: Report
) -> str:
    reasons = [f"{f.name} is not verified: {why}" for f in chosen if (why := against[id(f)])]
    good = len(chosen) - len(reasons)
    counted = f"{len(chosen)} fixes" if len(chosen) > 1 else "one fix"
    text = f"A second check over a copy with {counted} applied verified {_share(good, len(chosen))}."
    for reason in dict.fromkeys(reasons):
        text += f" {reason[:1].upper()}{reason[1:]}."
    named = {f.name for f in report.findings}
    further = [f for f in left if f.severity != Severity.NOTE and f.name not in named]
    if further:
        shown = ", ".join(dict.fromkeys(f"{f.name} ({f.where})" if f.where else f.name for f in further))
        text += f" Beyond the point where the first check stopped, it found {shown}."
    elif second.failure is not None and report.failure is None:
        text += f" Beyond the point where the first check stopped, the script raised {second.failure}."
    return text


def _share(good: int, of: int) -> str:
    if of == 1:
        return "it" if good else "nothing"
    return "all of them" if good == of else f"{good} of them"


# What the second check shows


def _moved(before: str, after: str) -> dict[int, int]:
    """The new number of each unchanged line after the edits, both counted from 1."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return {a + i + 1: b + i + 1 for a, b, size in matcher.get_matching_blocks() for i in range(size)}


def _left(
    report: Report, second: Report, chosen: Sequence[Finding], moved: Mapping[str, Mapping[int, int]]
) -> list[Finding]:
    """Findings of the second check, except known ones whose source was not edited."""

    def place(finding: Finding, lines: Mapping[str, Mapping[int, int]]) -> tuple[str, str, int]:
        if finding.where is None:
            return finding.name, "", 0
        file, line = finding.where.file, finding.where.line
        return finding.name, file, lines.get(file, {}).get(line, line)

    edited_in = {id(f) for f in chosen}
    known = {place(f, moved) for f in report.findings if id(f) not in edited_in}
    return [f for f in second.findings if place(f, {}) not in known]


def _broken(report: Report, second: Report, left: Sequence[Finding]) -> str:
    """What is worse in the second check, as "finds …"; empty if nothing is."""
    if second.internal_errors:
        return f"failed because of an internal error in Trainwright ({second.internal_errors[0].partition(chr(10))[0]})"
    before, after = ({run.stage: run for run in r.stages} for r in (report, second))
    named = {f.name for f in report.findings}
    rules = {r.name: r for r in load_rules()}
    is_poor = report.verdict is not None and report.verdict.shown in (Shown.BROKEN, Shown.DOES_NOT_LEARN)
    for finding in left:
        if finding.severity == Severity.NOTE or finding.name in named:
            continue
        if finding.stage == Stage.REHEARSAL and is_poor:  # there was no good result that the edits could spoil
            continue
        if all(before[s].status.through for s in _stages(finding, rules) if s in before):
            at = f" ({finding.where})" if finding.where else ""
            return f"finds a new fault, {finding.code} {finding.name}{at}: {finding.message}"
    for stage, run in before.items():
        if run.status.through and not (stage in after and after[stage].status.through):
            why = f": {after[stage].why}" if stage in after else ""
            return f"does not get through the {stage.label} stage, which the first check did{why}"
    return ""


def _stages(finding: Finding, rules: Mapping[str, Rule]) -> set[Stage]:
    """The stages that a finding's rule needs, and its own."""
    rule = rules.get(finding.name)
    return {finding.stage, *({kind.stage for kind in rule.needs} if rule else ())}


def _against(finding: Finding, second: Report, left: Sequence[Finding]) -> str:
    """Why the second check does not verify a finding's fix; empty if it does verify it."""
    if any(f.name == finding.name for f in left):
        return "it is still found"
    after = {run.stage: run for run in second.stages}
    for stage in sorted(_stages(finding, {r.name: r for r in load_rules()})):
        if stage not in after or not after[stage].status.through:
            why = f" ({after[stage].why})" if stage in after and after[stage].why else ""
            return f"the second check did not get through the {stage.label} stage{why}"
    return ""
