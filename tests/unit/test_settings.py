"""Which findings are reported: the command line, pyproject.toml and comments."""

import linecache
from pathlib import Path

import pytest

from trainwright.core import Finding, Place
from trainwright.errors import UsageError
from trainwright.options import Options, with_settings


def silenced(options: Options, file: str = "train.py", code: str = "TW401", name: str = "label-out-of-range") -> bool:
    return options.ignores(Finding(code=code, name=name, message="…", where=Place(file, 1)))


@pytest.fixture
def settings(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    linecache.clearcache()
    (tmp_path / "old [1]" / "deep").mkdir(parents=True)

    def write(text: str, **given) -> Options:
        (tmp_path / "pyproject.toml").write_text(f"[tool.trainwright]\n{text}\n")
        return with_settings(Options(**given), Path("train.py"))

    return write


def test_rules_are_named_or_coded(settings) -> None:
    assert silenced(settings('ignore = ["TW401"]')) and silenced(settings('ignore = ["label-out-of-range"]'))
    assert not silenced(settings('ignore = ["TW402"]'))


def test_of_selected_rules_alone_is_reported(settings) -> None:
    chosen = settings('select = ["TW401", "broadcast-loss"]\nignore = ["broadcast-loss"]')
    assert not silenced(chosen) and silenced(chosen, name="broadcast-loss", code="TW402")
    assert silenced(chosen, name="constant-loss", code="TW404")
    assert silenced(settings('select = ["TW401"]', select=("TW402",))), "the command line says what is selected"


@pytest.mark.parametrize(
    ("pattern", "silent"),
    [
        ("train.py", ["train.py", "old [1]/deep/train.py"]),
        ("old*/*", ["old [1]/deep/train.py"]),
        ("./old*/*/train.py", ["old [1]/deep/train.py"]),
        ("**/train.py", ["train.py", "old [1]/deep/train.py"]),
        ("old*/**/train.py", ["old [1]/deep/train.py"]),
        ("old*/**/deep/*", ["old [1]/deep/train.py"]),
        ("elsewhere/../old*/", ["old [1]/deep/train.py"]),
        ("*in.py/**/x", []),
        ("t*.txt", []),
    ],
)
def test_files_have_ignores_of_their_own(settings, pattern: str, silent: list[str]) -> None:
    options = settings(f"per-file-ignores = {{ {pattern!r} = ['TW401'] }}")
    assert [file for file in ("train.py", "old [1]/deep/train.py") if silenced(options, file)] == silent
    assert not silenced(options, code="TW402", name="broadcast-loss")


def test_a_comment_names_or_codes_its_rules(settings) -> None:
    Path("train.py").write_text("model = f(2)  # trainwright: allow TW401\n")
    assert silenced(Options()) and not silenced(Options(), code="TW402", name="broadcast-loss")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selct = []", "takes budget, ignore, per-file-ignores, samples, select; got selct"),
        ("select = ['TW4']", "select takes names and codes of rules; there is no rule 'TW4'"),
        ("select = 'TW401'", "select must be a list"),
        ("per-file-ignores = ['TW401']", "must be a table"),
        ("per-file-ignores = { 'a.py' = 'TW401' }", "'a.py' must be a list"),
        ("per-file-ignores = { 'a.py' = [''] }", "there is no rule ''"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        settings(text)
    assert said in str(raised.value)
