"""What libraries' warnings mean, and which findings they are evidence for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trainwright.core import Finding, LibraryWarning, Report
from trainwright.core.quotations import flat, quoted_in
from trainwright.frameworks.warning_texts import HARMLESS, HARMLESS_CATEGORIES, KNOWN
from trainwright.stages import WarningFacts


def judge_warnings(heard: Iterable[LibraryWarning]) -> WarningFacts:
    """The warnings with what is known of their texts; harmless ones and the user's own are left out."""
    return WarningFacts(heard=tuple(known for w in heard if (known := _known(w)) is not None))


def with_warnings(report: Report, facts: WarningFacts) -> Report:
    """The report with its warnings, which its findings cite as evidence."""
    return replace(
        report, warnings=facts.heard, findings=tuple(_with_evidence(finding, facts) for finding in report.findings)
    )


def _known(warning: LibraryWarning) -> LibraryWarning | None:
    for text in KNOWN:
        if quoted_in(text.text, flat(warning.text)):
            library = warning.library or text.library
            return replace(warning, library=library, means=text.means, rule=text.rule, everyday=text.everyday)
    harmless = warning.category.endswith(HARMLESS_CATEGORIES) or any(
        quoted_in(text, flat(warning.text)) for text in HARMLESS
    )
    return None if harmless or not warning.library else warning


def _with_evidence(finding: Finding, facts: WarningFacts) -> Finding:
    return replace(finding, warned=tuple(_told(w) for w in facts.speaking_for(finding.name)))


def _told(warning: LibraryWarning) -> str:
    at = f" at {warning.where}" if warning.where else ""
    return f"{warning.library} warned{at}: {warning.text}"
