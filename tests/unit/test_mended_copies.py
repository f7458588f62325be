"""The copies in which a walk's proven edits are made, line for line."""

from dataclasses import replace
from pathlib import Path

import pytest

from trainwright.core import Failure, Finding, Fix, Place, RemoveKeyword, RenameKeyword, Report
from trainwright.fixes.mended_copies import MendedCopies

TEXT = 'args = Arguments(\n    evaluation_strategy="steps",\n    old=1,\n)\nprint(unknown)\n'


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "train.py"
    file.write_text(TEXT)
    return str(file)


def renamed(script: str, *, tried: bool = True) -> Finding:
    edit = RenameKeyword(script, 2, "evaluation_strategy", "eval_strategy")
    fix = Fix(does="write eval_strategy=", edits=(edit,), tried=tried)
    return Finding(message="…", where=Place(script, 2), fix=fix, code="TW001", name="renamed-argument")


def test_proven_edits_are_made_and_lines_keep_their_numbers(script: str) -> None:
    copies = MendedCopies([Report(script=script, findings=(renamed(script),))])
    (text,) = copies.texts.values()
    assert copies.is_whole and text.splitlines()[1] == '    eval_strategy="steps",'
    assert text.count("\n") == TEXT.count("\n") and Path(script).read_text() == TEXT
    where = Place(script, 5)
    failure = Failure(type="NameError", message="name 'unknown' is not defined", where=where)
    assert copies.go_past(failure) and next(iter(copies.texts.values())).splitlines()[4] == "pass"
    assert copies.changes == ["line 2: write eval_strategy=", "line 5: print(…) is left out"]


def test_an_error_without_a_proven_edit_is_left_in_them(script: str) -> None:
    finding = renamed(script, tried=False)
    assert not MendedCopies([Report(script=script, findings=(finding,))]).is_whole
    assert MendedCopies([Report(script=script, findings=(finding,), passed=(finding,))]).is_whole
    gone = replace(finding, fix=Fix(does="…", edits=(RemoveKeyword(script, 3, "old"),), tried=True))
    copies = MendedCopies([Report(script=script, findings=(gone,))])
    assert all(text.count("\n") == TEXT.count("\n") for text in copies.texts.values())
