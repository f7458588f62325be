"""Whole runs in tests/seen are judged by everything that was seen, and no sentence says what was not.

A script's first lines say what is expected: `# verdict: …`, `# finds: …` (`nothing`: no finding above a note) and, if it is to
be told, `# tells: …`. `# finds: name` on a line is the line that the finding names.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from exam.programs import ENVIRONMENT
from trainwright.core import Report, Severity
from trainwright.judging.report import judge_run
from trainwright.options import Options
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.report.sheet import brief
from trainwright.review.sheet import sheet_of

SCRIPTS = sorted((Path(__file__).parents[1] / "seen").glob("*.py"))
IMPORTED = ["torch", "sklearn.metrics", "transformers", "accelerate", "lightning"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(IMPORTED, {**ENVIRONMENT, "OMP_NUM_THREADS": "1"}) as server:
        yield server


def expected(text: str, what: str) -> str:
    found = re.search(rf"^# {what}: (.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_what_is_seen_is_said(script: Path, server: Server) -> None:
    text = script.read_text("utf-8")
    with Rehearsal(
        str(script), seconds=float(expected(text, "seconds") or 60), folder=script.parent, server=server
    ) as rehearsal:
        record = rehearsal.wait()
    assert not record.watcher_errors
    report = judge_run(Report(script=script.name), record, Options())
    assert not report.internal_errors
    findings, verdict = report.findings, report.verdict
    assert verdict is not None
    found = [one for one in findings if one.severity != Severity.NOTE]
    finds = expected(text, "finds")
    assert [one.name for one in found] == ([] if finds == "nothing" else [finds]), [one.message for one in found]
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith(f"  # finds: {finds}")]
    if lines:
        assert found[0].where is not None and found[0].where.line in lines, found[0].where
    assert str(verdict.shown) == expected(text, "verdict"), verdict.why
    sheet = "\n".join(" ".join(line.cells) for lines in brief(sheet_of(record, findings)).values() for line in lines)
    assert expected(text, "tells") in f"{verdict.why}\n{sheet}\n{[one.message for one in findings]}"
