"""Which words of a command are ours: options stand before SCRIPT, and a word says so where one stands behind it."""

import pytest

from trainwright.cli import options_of
from trainwright.start.command_line import arrange_words as arranged_for

SILENT = "import os, json\nimport torch\nfrom torch import nn\nmodel = nn.Linear(2, 2)\nmodel.eval()\nprint('no arguments')\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arranged(words):
    return arranged_for(words, options_of)


def test_the_options_are_those_of_the_commands():
    check, run = ({o.name: o.takes_value for o in options_of(name)} for name in ("check", "run"))
    assert check == {
        "-m": False, "--json": True, "--html": True, "--budget": True, "--seed": True, "--ignore": True,
        "--device": True, "--repair": False, "--no-repair": False, "--diff": True, "--verify": False,
        "--require-learning": False, "--training": True, "--samples": False, "--no-samples": False, "--verbose": False,
        "--select": True, "--baseline": True, "--write-baseline": True, "--format": True,
    }  # fmt: skip
    assert check.items() >= run.items() and not {"--diff", "--verify", "--device"} & run.keys()


def test_options_behind_a_script_are_its_own_and_named(here):
    (here / "train.py").write_text("import argparse\n" + SILENT)
    words, said = arranged(["check", "train.py", "--json", "o.json", "--epochs", "3"])
    assert words == ["check", "--", "train.py", "--json", "o.json", "--epochs", "3"]
    assert said.startswith("--json after train.py goes to the script; to use it for Trainwright, write it before")


def test_options_of_both_sides_are_told_apart_by_the_script_between_them(here):
    (here / "train.py").write_text(SILENT)
    words, said = arranged(["check", "--seed", "1", "train.py", "--json", "o.json", "x", "--budget=3", "--no-repair"])
    assert words == ["check", "--seed", "1", "--", "train.py", "--json", "o.json", "x", "--budget=3", "--no-repair"]
    assert said.startswith("--json, --budget, --no-repair after train.py go to the script; to use them for Trainwright")


def test_what_the_script_names_itself_and_what_is_not_ours_goes_without_a_word(here):
    (here / "train.py").write_text("import argparse\nparser.add_argument('--seed')\n" + SILENT)
    assert arranged(["check", "train.py", "--seed", "3", "--epochs", "3"])[1] == ""
    assert arranged(["check", "--", "train.py", "--json", "o.json"])[1] == ""
    assert arranged(["run", "train.py", "--verify"])[1] == ""
    assert arranged(["check", "train.py", "-m"]) == (["check", "--", "train.py", "-m"], "")


def test_behind_a_notebook_and_a_launchers_script_options_are_named_too(here):
    words, said = arranged(["check", "a.ipynb", "--json", "o"])
    assert words == ["check", "--", "a.ipynb", "--json", "o"] and "--json" in said
    (here / "train.py").write_text(SILENT)
    words, said = arranged(["check", "torchrun", "train.py", "--json", "o"])
    assert words == ["check", "--", "torchrun", "train.py", "--json", "o"] and "--json" in said
