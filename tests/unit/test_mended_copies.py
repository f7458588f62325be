"""Copies of a script that go past what stops it, line for line."""

from dataclasses import replace
from pathlib import Path

import pytest

from trainwright.core import Failure, Place
from trainwright.fixes.mended_copies import MendedCopies

TEXT = 'args = Arguments(\n    evaluation_strategy="steps",\n    old=1,\n)\nprint(unknown)\n'


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "train.py"
    file.write_text(TEXT)
    return str(file)


def test_a_copy_goes_past_a_line_and_lines_keep_their_numbers(script: str) -> None:
    copies = MendedCopies({})
    failure = Failure(type="NameError", message="name 'unknown' is not defined", where=Place(script, 5))
    assert copies.go_past(failure) and copies.changes == ["line 5: print(…) is left out"]
    (text,) = copies.texts.values()
    assert text.splitlines()[4] == "pass" and text.count("\n") == TEXT.count("\n")
    assert Path(script).read_text() == TEXT
    assert not copies.go_past(replace(failure, where=Place(script, 1)))


def test_a_copy_of_an_edited_copy_keeps_its_edits(script: str) -> None:
    copies = MendedCopies({script: TEXT.replace("old=1", "new=1")})
    failure = Failure(type="NameError", message="name 'unknown' is not defined", where=Place(script, 5))
    assert copies.go_past(failure)
    assert list(copies.texts) == [script] and "new=1" in copies.texts[script]
