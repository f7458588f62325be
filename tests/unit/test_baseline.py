"""Findings that are known: by rule, file and the text of the line."""

import json
import linecache
from dataclasses import replace
from pathlib import Path

import pytest

from trainwright.baseline import read_baseline, render, without_known
from trainwright.core import (
    Failure,
    Finding,
    Place,
    Report,
    Severity,
    Shown,
    Stage,
    StageRun,
    Status,
    Verdict,
    exit_status,
)
from trainwright.errors import ReadError
from trainwright.report import github, junit, markdown, sarif, words


def fault(line: int | None, name: str = "label-out-of-range", **changed) -> Finding:
    where = Place("train.py", line) if line is not None else None
    return Finding(code="TW401", name=name, message="…", where=where, **changed)


def report(*findings: Finding, **changed) -> Report:
    return Report(
        **{"script": "train.py", "findings": findings, "verdict": Verdict(shown=Shown.BROKEN, why="…"), **changed}
    )


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("a = 1\nmodel = f(2)\nmodel = f(2)\nb = 3\n")
    linecache.clearcache()
    return Path("train.py")


def known_of(*findings: Finding):
    Path("b.json").write_text(render(report(*findings)))
    return read_baseline("b.json")


def test_a_known_finding_is_left_out_where_its_line_has_moved(script: Path) -> None:
    known = known_of(fault(2), fault(None, "partial-data"))
    script.write_text("import x\n" + script.read_text().replace("model", "  model"))
    linecache.clearcache()
    left = without_known(report(fault(3), fault(None, "partial-data"), fault(5)), known)
    assert [f.where for f in left.findings] == [Place("train.py", 5)] and exit_status(left) == 1
    assert left.message.endswith("left out: 2.") and left.verdict == Verdict(shown=Shown.BROKEN, why="…")


def test_equal_lines_are_known_as_often_as_they_were_written() -> None:
    left = without_known(report(fault(2), fault(3)), known_of(fault(2)))
    assert left.findings == (fault(3),)


def test_another_rule_or_line_is_new() -> None:
    new = (fault(4), fault(2, "broadcast-loss"))
    assert without_known(report(*new), known_of(fault(2))) == report(*new)


FAILED = (StageRun(stage=Stage.REHEARSAL, status=Status.FAILED, why="KeyError: 'x'"),)


def test_a_script_that_stopped_before_fails_no_check() -> None:
    Path("b.json").write_text(render(report(fault(2), stages=FAILED)))
    known = read_baseline("b.json")
    assert exit_status(report(fault(2), stages=FAILED)) == 1
    assert exit_status(without_known(report(fault(2), stages=FAILED), known)) == 0
    warned = fault(2, severity=Severity.WARNING)  # which explains no failure
    assert exit_status(without_known(report(warned, stages=FAILED), known)) == 1
    named = (fault(2), fault(4, "script-stopped"))
    assert exit_status(without_known(report(*named, stages=FAILED), known_of(*named))) == 0


def test_a_script_that_stops_where_the_baseline_knows_of_none_fails_it() -> None:
    left = without_known(report(fault(2), stages=FAILED), known_of(fault(2)))
    assert exit_status(left) == 1 and [f.name for f in left.findings] == ["script-stopped"]
    assert "KeyError: 'x'" in left.findings[0].message
    Path("b.json").write_text(render(left))
    assert exit_status(without_known(report(fault(2), stages=FAILED), read_baseline("b.json"))) == 0


def test_a_finding_is_known_from_another_folder_of_the_repository(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / ".git").mkdir()
    known = known_of(fault(2))
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    there = replace(fault(2), where=Place(str(tmp_path / "train.py"), 2))
    assert not without_known(report(there), known).findings


def test_a_known_note_is_no_reason_for_a_training_that_was_not_reached() -> None:
    noted = without_known(report(fault(2, severity=Severity.NOTE)), known_of(fault(2)))
    assert exit_status(noted) == 2 and exit_status(without_known(report(fault(2)), known_of(fault(2)))) == 0


def test_what_is_known_fails_in_no_format() -> None:
    stopped, failure = fault(2, "script-stopped"), Failure(type="NameError", message="…", where=Place("train.py", 2))
    stages = (StageRun(stage=Stage.REHEARSAL, status=Status.FAILED),)
    found = report(stopped, stages=stages, failure=failure)
    left = without_known(found, known_of(stopped))
    assert left.known and exit_status(left) == 0
    for one, is_failed in ((found, True), (left, False)):
        status = exit_status(one)
        assert ("<failure" in junit.render(one, status)) == ("::error" in github.render(one, status)) == is_failed
    assert '"level": "error"' not in sarif.render(left, 0) and "NameError" not in markdown.render(left, 0)
    assert "raised an error" not in words.unexplained(left)


def test_a_baseline_written_beside_another_has_what_that_knows() -> None:
    left = without_known(report(fault(2), fault(4)), known_of(fault(2)))
    assert [one["line"] for one in json.loads(render(left))["findings"]] == ["b = 3", "model = f(2)"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "--write-baseline b.json writes it"),
        ("[]", "must be a file that"),
        ('{"findings": [{}]}', "must be a file"),
    ],
)
def test_what_is_no_baseline_is_refused(text: str | None, said: str) -> None:
    Path("b.json").write_text(text) if text is not None else None
    with pytest.raises(ReadError, match=said):
        read_baseline("b.json")
    assert not read_baseline(None)
