"""The report as JUnit's XML, which servers of CI read: a suite for the check, a case for its verdict and for each stage."""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from trainwright.core import Finding, Report, Severity, Shown, StageRun, Status
from trainwright.report import words

# What XML 1.0 cannot hold, such as the colours of a terminal.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, status: int) -> str:
    """The report as an XML document, of a check with this exit status: its verdict fails where nothing else does."""
    runs = {run.stage: run for run in report.stages}
    loud = [finding for finding in words.ordered(report) if finding.severity != Severity.NOTE]
    cases = [("verdict", report.seconds, *_verdict(report, status))]
    cases += [("Trainwright", 0.0, "error", "internal error in Trainwright", text) for text in report.internal_errors]
    for stage in sorted({*runs, *(finding.stage for finding in loud)}):
        run = runs.get(stage, StageRun(stage=stage, status=Status.FAILED))
        cases.append((stage.label, run.seconds, *_stage(run, [f for f in loud if f.stage == stage], report.faulty)))
    document = xml.Element("testsuites")
    suite = xml.SubElement(document, "testsuite", name=report.script, tests=str(len(cases)))
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case[2] == kind for case in cases)))
    for name, seconds, kind, message, text in cases:
        case = xml.SubElement(suite, "testcase", classname=report.script, name=name, time=f"{seconds:.2f}")
        told = {"message": message} if kind else {}
        xml.SubElement(case, kind or "system-out", told).text = text if kind else f"{message} {text}".strip()
    xml.indent(document)
    body = _NO_XML.sub("\ufffd", xml.tostring(document, encoding="unicode"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _verdict(report: Report, status: int) -> tuple[str, str, str]:
    """The element that says how a case ended, empty for one that passed; its message and its text."""
    shown = report.verdict.shown if report.verdict is not None else None
    is_failed = bool(status) and (shown in (Shown.BROKEN, Shown.DOES_NOT_LEARN) or not report.faulty)
    raised = words.raised(report.failure) if report.failure is not None else ""
    kind = "failure" if is_failed else "" if shown in (Shown.LEARNS, Shown.LEARNS_IN_PART) else "skipped"
    return kind, words.judged(report), report.message or raised


def _stage(run: StageRun, found: list[Finding], is_faulty: bool) -> tuple[str, str, str]:
    """The same of a stage, in which a finding above a note is a failure, fixed in memory or not; what a baseline knows is none."""
    if not found:
        failed = "failure" if is_faulty else "skipped"
        return {Status.FAILED: failed, Status.SKIPPED: "skipped"}.get(run.status, ""), run.why, ""
    return "failure", words.head(found[0]), "\n\n".join("\n".join([words.head(f), *words.remarks(f)]) for f in found)
