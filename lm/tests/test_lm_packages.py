"""`trainwright lm` without the packages of its extra: one line says which are missing, and help is given all the same."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trainwright_lm.cli import COMMANDS, PACKAGES

HIDDEN = """
import importlib.abc, sys
hidden = {names!r}
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
sys.argv = ["trainwright", "lm", *{words!r}]
from trainwright.cli import main
main()
"""
WORDS = {
    "prepare": ["source", "--out", "data"],
    "train": ["data", "--out", "run"],
    "eval": ["run"],
    "complete": ["run", "import "],
    "export": ["run", "out"],
    "import": ["folder", "run"],
    "push": ["run", "me/model"],
}


def lm(folder: Path, words: list[str], names=PACKAGES):
    code = HIDDEN.format(names=tuple(names), words=words)
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("lm")
    for name in ("source", "data", "run", "folder"):
        (where / name).mkdir()
    (where / "source" / "a.py").write_text("x = 1\n")
    return where


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_in_one_line_which_packages_it_needs(command: str, folder: Path) -> None:
    ended = lm(folder, [command, *WORDS[command]])
    assert ended.returncode == 2, ended.stdout + ended.stderr
    (line,) = ended.stderr.strip().split("\n")
    assert line.startswith('trainwright lm needs additional packages: pip install "trainwright[lm]"'), line
    assert all(name in line for name in PACKAGES), line


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_needs_none_of_them(command: str, folder: Path) -> None:
    ended = lm(folder, [*([command] if command else []), "--help"])
    assert ended.returncode == 0 and "Usage" in ended.stdout, ended.stdout + ended.stderr


def test_only_what_is_missing_is_named(folder: Path) -> None:
    ended = lm(folder, ["complete", "run", "import "], ["tokenizers"])
    assert ended.returncode == 2 and ended.stderr.strip().endswith("(not installed: tokenizers)"), ended.stderr


def test_the_packages_are_those_of_the_extra() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    wanted = settings["project"]["optional-dependencies"]["lm"]
    assert [name.partition(">")[0] for name in wanted] == list(PACKAGES)
