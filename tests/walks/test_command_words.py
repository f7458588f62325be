"""Which words of a command are ours: options behind SCRIPT, and whether the script reads its command line."""

import json

import pytest
from test_bad_input import command
from test_launchers import LOOP

from trainwright.cli import options_of
from trainwright.start.command_line import arranged as arranged_for
from trainwright.start.command_line import takes_no_arguments

SILENT = "import os, json\nimport torch\nfrom torch import nn\nmodel = nn.Linear(2, 2)\nmodel.eval()\nprint('no arguments')\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "import sys\nprint(sys.argv)",
        "from sys import argv",
        "import sys as system",
        "import sys\nf = getattr(sys, name)",
        "import os\nos.sys.argv",
        "import argparse",
        "import click",
        "import tyro",
        "from absl import app",
        "import fire",
        "import hydra",
        "import simple_parsing",
        "from docopt import docopt",
        "import some_package_of_mine",
        "from transformers import HfArgumentParser",
        "from trl import TrlParser",
        "from lightning.pytorch.cli import LightningCLI",
        "from torch.distributed.run import main",
        "from torch.distributed import run",
        "from accelerate.commands.launch import main",
        "import tensorflow as tf\ntf.compat.v1.app.run()",
        "import importlib",
        "exec(text)",
        "open('/proc/self/cmdline')",
        "import local_reader",
        "from package import reader",
        "from package.reader import options",
        "def broken(",
    ],
)
def test_a_script_that_may_read_its_arguments_is_not_called_silent(here, line):
    (here / "local_reader.py").write_text("import other_local")
    (here / "other_local.py").write_text("import argparse")
    (here / "package").mkdir()
    (here / "package" / "__init__.py").write_text("")
    (here / "package" / "reader.py").write_text("from . import deeper")
    (here / "package" / "deeper.py").write_text("import sys\noptions = sys.argv")
    script = here / "train.py"
    script.write_text(f"{SILENT}{line}\n")
    assert not takes_no_arguments(script, here)


def test_a_script_that_cannot_read_arguments_is_known(here):
    (here / "helpers").mkdir()
    (here / "helpers" / "__init__.py").write_text("from .rows import ROWS\nfrom helpers import rows")
    (here / "helpers" / "rows.py").write_text("import numpy as np\nROWS = 3")
    script = here / "train.py"
    script.write_text(SILENT + "import sys\nfrom helpers import ROWS\nfrom transformers import Trainer\nsys.exit(0)\n")
    assert takes_no_arguments(script, here)


def arranged(words):
    return arranged_for(words, options_of)


def test_the_options_are_those_of_the_commands():
    check, run = ({o.name: o.takes_value for o in options_of(name)} for name in ("check", "run"))
    assert check == {
        "-m": False, "--json": True, "--html": True, "--budget": True, "--seed": True, "--ignore": True,
        "--device": True, "--repair": False, "--no-repair": False, "--diff": True, "--verify": False, "--copies": True,
        "--require-learning": False, "--training": True, "--rehearsal": False, "--no-rehearsal": False,
        "--samples": False, "--no-samples": False, "--verbose": False,
    }  # fmt: skip
    assert check.items() >= run.items() and not {"--diff", "--verify", "--device"} & run.keys()


def test_an_option_that_no_help_shows_stays_the_scripts(here):
    (here / "train.py").write_text(SILENT)
    for words in (["--copies", "3"], ["-m"]):
        assert arranged(["check", "train.py", *words])[0] == ["check", "--", "train.py", *words]


def test_options_behind_a_silent_script_are_taken(here):
    (here / "train.py").write_text(SILENT)
    words, said = arranged(["check", "--seed", "1", "train.py", "--json", "o.json", "x", "--budget=3", "--no-repair"])
    assert words == ["check", "--seed", "1", "--json", "o.json", "--budget=3", "--no-repair", "--", "train.py", "x"]
    assert "--json, --budget, --no-repair" in said


def test_options_behind_a_reading_script_are_its_own_and_named(here):
    (here / "train.py").write_text("import argparse\n" + SILENT)
    words, said = arranged(["check", "train.py", "--json", "o.json", "--epochs", "3"])
    assert words == ["check", "--", "train.py", "--json", "o.json", "--epochs", "3"]
    assert said.startswith("--json after train.py goes to the script; to use it for Trainwright, write it before")


def test_what_the_script_names_itself_and_what_is_not_ours_goes_without_a_word(here):
    (here / "train.py").write_text("import argparse\nparser.add_argument('--seed')\n" + SILENT)
    assert arranged(["check", "train.py", "--seed", "3", "--epochs", "3"])[1] == ""
    assert arranged(["check", "--", "train.py", "--json", "o.json"])[1] == ""
    assert arranged(["run", "train.py", "--verify"])[1] == ""


def test_a_notebook_takes_no_arguments_and_a_launchers_script_its_own(here):
    assert arranged(["check", "a.ipynb", "--json", "o"])[0] == ["check", "--json", "o", "--", "a.ipynb"]
    (here / "train.py").write_text(SILENT)
    words, said = arranged(["check", "torchrun", "train.py", "--json", "o"])
    assert words == ["check", "--", "torchrun", "train.py", "--json", "o"] and "--json" in said


def test_a_report_is_written_where_an_option_behind_the_script_says(tmp_path):
    (tmp_path / "train.py").write_text(
        LOOP.replace("import os, sys\n", "import os\n").replace("sys.argv[1:]", "'nothing'")
    )
    done = command(tmp_path, "check", "train.py", "--json", "out.json")
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["script"] == "train.py"
    assert "train.py reads no command line" in done.stderr
