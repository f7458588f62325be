"""The commands of `trainwright lm` as they show themselves."""

import subprocess
import sys

import pytest

from trainwright_lm.cli import COMMANDS


def shown(*words: str) -> str:
    command = [sys.executable, "-m", "trainwright", "lm", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_every_command_has_a_line_in_the_list() -> None:
    lines = shown("--help").splitlines()
    for name in COMMANDS:
        assert any(line.startswith(f"│ {name} ") and len(line.split()) > 4 for line in lines), name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_s_help_has_examples_of_its_own(name) -> None:
    assert f"trainwright lm {name}" in shown(name, "--help").partition("Examples:")[2]


def test_no_help_imports_a_framework() -> None:
    program = (
        "import sys; from trainwright.cli import app; app(['lm', 'train', '--help']); "
        "sys.exit(bool({'torch', 'tokenizers', 'pyarrow'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
