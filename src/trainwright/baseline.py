"""A baseline: the findings that are known already, in a file; they are left out of a report, and do not count."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from trainwright.core import Finding, Report, Stage, Status
from trainwright.errors import ReadError
from trainwright.report.source import excerpt, path_in_repository

KEYS = ("name", "file", "line")
STOPPED = "script-stopped"
Known = tuple[str, ...]
"""A finding's rule, file and the line's text: it stays known where lines move."""


def render(report: Report) -> str:
    """The file's text: every finding of a report, and that the script stopped."""
    known = sorted(map(_known, (*report.known, *report.findings, *_unnamed_stop(report))))
    listed = {"findings": [dict(zip(KEYS, one, strict=True)) for one in known]}
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"


def read_baseline(file: str | None) -> Counter[Known]:
    """The findings of a file, each as often as it is known; None: nothing is.

    Raises:
        ReadError: if there is no such file, or it has another form.
    """
    try:
        data = json.loads(Path(file).read_text("utf-8") if file is not None else '{"findings": []}')
        return Counter(tuple(str(one[key]) for key in KEYS) for one in data["findings"])
    except FileNotFoundError:
        raise ReadError(f"there is no baseline {file}; --write-baseline {file} writes it.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReadError(f"{file} must be a file that --write-baseline has written: {error!r}.") from error


def without_known(report: Report, known: Counter[Known]) -> Report:
    """The report without the findings that are known, which it counts; the verdict stays what it is."""
    left, new, old = Counter(known), list[Finding](), list[Finding]()
    for finding in report.findings:
        left[key := _known(finding)] -= 1
        (old if left[key] >= 0 else new).append(finding)
    if not old:
        return report
    new += _unnamed_stop(report) if not any(name == STOPPED for name, _, _ in known) else []
    message = f"{report.message} Known findings of the baseline, which are left out: {len(old)}.".strip()
    return replace(report, findings=tuple(new), known=tuple(old), message=message)


def _unnamed_stop(report: Report) -> list[Finding]:
    """That the script stopped, where no finding says it, because an error is taken to be the cause."""
    is_named = any(finding.name == STOPPED for finding in (*report.known, *report.findings))
    ends = (one.why for one in report.stages if one.stage == Stage.REHEARSAL and one.status == Status.FAILED)
    told = "the script stops, which the baseline does not know"
    return [Finding(code="TW1001", name=STOPPED, message=f"{told}: {why}") for why in ends if not is_named]


def _known(finding: Finding) -> Known:
    if finding.where is None:
        return finding.name, "", ""
    line = "".join(line.text for line in excerpt(finding.where, around=0))
    return finding.name, path_in_repository(finding.where.file), " ".join(line.split())
