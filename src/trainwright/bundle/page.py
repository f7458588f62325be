"""The page to paste: what happened, the smallest script, the report, the versions, and the data in outline."""

from __future__ import annotations

import linecache
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from trainwright import __version__
from trainwright.bundle.blame import Blame
from trainwright.bundle.redact import without_quoted
from trainwright.core import Finding, Report

MARK = "<!-- made by trainwright bundle -->"
"""The first line of the page; a folder whose page begins so is a bundle."""
_HEADINGS = {
    "script": "It looks like a fault of the script",
    "library": "It looks like a fault of a library",
    "trainwright": "It looks like a fault of Trainwright",
    "unknown": "Whose fault it is is not known",
}


def page(report: Report, blamed: Blame, script: str, what: str, values: Mapping[str, Any]) -> Iterator[str]:
    """The page's lines.

    Args:
        script: the smallest script; empty if there is none.
        what: how it was found, or why there is none.
        values: the data in outline, by name.
    """
    yield from (MARK, f"# {_title(report)}", "", f"{_HEADINGS[blamed.whose]}: {blamed.why}", "")
    yield from (f"Where to post it: {blamed.post}", "", "## What happened", "")
    yield from _happened(report)
    yield from ("", "## Smallest script that shows it", "")
    if script:
        yield from (f"Verified by being run ({what}): `trainwright check reproduce.py`", "")
        yield from ("```python", script.rstrip(), "```")
    else:
        yield f"There is none: {what}."
    if values:
        yield from ("", "## The data", "", "| name | what it is |", "|---|---|")
        yield from (f"| `{name}` | {told} |" for name, told in values.items())
    yield from ("", "## Stages", "", "| stage | ended | measured |", "|---|---|---|")
    yield from (f"| {s.stage.label} | {s.status} | {_cell(s.why)} |" for s in report.stages)
    yield from ("", "## Environment", "")
    yield from (f"- {name}: {told}" for name, told in environment(report).items())


def environment(report: Report) -> dict[str, str]:
    """Versions, platform and devices; nothing that names a person or a machine."""
    found = {**report.versions, "trainwright": __version__}
    found["platform"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    found["processors"] = str(os.cpu_count())
    found["devices"] = "; ".join(_devices()) or "no NVIDIA GPU"
    if report.redirected:
        found["checked on"] = f"the CPU: {report.redirected.why}"
    return found


def without_data(value: Any) -> Any:
    """The report's data without what may be quoted from rows."""
    shown = {**value, "sheet": None} if isinstance(value, dict) and "sheet" in value else value
    return with_texts(shown, without_quoted, but=("diff",))


def with_texts(value: Any, change: Callable[[str], str], but: Collection[str] = ()) -> Any:
    """Plain data with every text changed by itself: in JSON, quotes and backslashes are written differently.

    Args:
        but: what stands under these names stays.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [with_texts(v, change, but) for v in value]
    if isinstance(value, dict):
        return {change(k): v if k in but else with_texts(v, change, but) for k, v in value.items()}
    return value


def _title(report: Report) -> str:
    first = report.first_cause
    if first is not None:
        return f"{first.code} {first.name}: {first.message}"
    return str(report.failure) if report.failure else report.message or "Nothing was found"


def _happened(report: Report) -> Iterator[str]:
    if report.verdict:
        yield f"Whether it learns: {report.verdict.shown}; {report.verdict.why}"
    if report.message:
        yield report.message
    for finding in sorted(report.findings, key=lambda f: f is not report.first_cause):
        yield from _finding(finding)
    failure = report.failure
    if failure:
        yield from ("", "```", *failure.trace, f"{failure.type}: {failure.message}", "```")
        yield from (f"raised from {cause}" for cause in failure.causes)


def _finding(finding: Finding) -> Iterator[str]:
    at = f" ({finding.where})" if finding.where else ""
    yield f"- **{finding.code} {finding.name}** ({finding.severity}){at}: {finding.message}"
    where = finding.where
    line = "" if where is None or where.cell else linecache.getline(where.file, where.line)
    if line.strip():
        yield f"  `{line.strip()}`"
    if finding.measured:
        yield "  measured: " + ", ".join(f"{k} {v}" for k, v in finding.measured.items())
    if finding.fix:
        yield f"  advice: {finding.fix.does}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _devices() -> Iterator[str]:
    """Names of NVIDIA GPUs with driver and memory, as their own tool tells them."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return
    words = [tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        told = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout
        yield from told.strip().splitlines()
    except (OSError, subprocess.SubprocessError):
        return
