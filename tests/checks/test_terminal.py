"""What stands in a terminal beside a report, and what a shell completes; through the real command."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """\
import os
import torch
from torch import nn

torch.manual_seed(0)
print("the script's own words")
os.write(2, b"those of its libraries\\n")  # past Python's streams, as C++ writes
x = torch.randn(96, 5)
y = x[:, :3].argmax(1)
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 96
    def __getitem__(self, i):
        return x[i], y[i]
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for a, b in torch.utils.data.DataLoader(Rows(), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
"""


def in_terminal(folder: Path, *words: str) -> str:
    """What a command shows in a terminal, without colours and lines that were wiped out."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    command = [sys.executable, "-m", "trainwright", *words]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end was closed
            break
        seen += part
    process.wait()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode()).replace("\r", "")


def test_only_the_report_is_shown_and_what_to_do_behind_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    shown = in_terminal(tmp_path, "check", "--seed", "1", "train.py", "--name", "a b")
    assert "own words" not in shown
    assert "those of" not in shown
    last = shown.strip().split("\n")[-1]
    assert last.startswith("Next: evaluate rows that are not trained on")
    assert last.endswith("trainwright check --seed 1 train.py --name 'a b'")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("print('no data in this folder')\nraise SystemExit(1)\n", "(it printed: no data in this folder)"),
        ("import os\nos.write(2, b'lost the driver')\nos.kill(os.getpid(), 11)\n", "it printed last: lost the driver"),
    ],
)
def test_a_script_that_ends_before_its_training_says_why_in_its_own_words(
    script: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(script)
    shown = in_terminal(tmp_path, "check", "train.py")
    assert said in " ".join(re.sub(r"[│╭╮╰╯─]", " ", shown).split())


def test_a_terminals_size_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nprint('-' * os.get_terminal_size().columns)\n")
    assert "OSError" not in in_terminal(tmp_path, "check", "train.py")


def test_rows_that_a_script_prints_are_not_quoted_where_none_may_be_shown(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('one row of the data')\n")
    assert "one row" in in_terminal(tmp_path, "check", "train.py")
    assert "one row" not in in_terminal(tmp_path, "check", "--no-samples", "train.py")


def test_standard_output_is_the_reports_also_where_the_script_then_trains(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    words = [sys.executable, "-m", "trainwright", "run", "--json", "-", "train.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert json.loads(ended.stdout)["script"] == "train.py" and "the script's own words" in ended.stderr


def test_a_shell_completes_our_options_and_leaves_the_scripts_alone(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    words = [sys.executable, "-m", "trainwright", "--install-completion", "--shell", "bash", "--output", str(script)]
    subprocess.run(words, env={**os.environ, "HOME": str(tmp_path)}, check=True, capture_output=True)
    subprocess.run(["bash", "-n", str(script)], check=True)
    completed = """
        source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _trainwright
        echo "${COMPREPLY[@]}"; complete -p trainwright
    """

    def offered(line: str) -> list[str]:
        ended = subprocess.run(
            ["bash", "-c", completed, "bash", str(script), *line.split(" ")], check=True, capture_output=True, text=True
        )
        words, how = ended.stdout.splitlines()
        assert "-o default" in how, "files are completed where nothing of ours is"
        return words.split()

    assert offered("trainwright ch") == ["check"]
    assert offered("trainwright check --json r.json --basel") == ["--baseline"]
    assert offered("trainwright check train.py --basel") == []
    assert offered("trainwright check --budget 3 train.py --") == []
    assert offered("trainwright rules --js") == ["--json"]


def test_all_rules_as_json(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "trainwright", "rules", "--json"], capture_output=True, text=True, check=True
    )
    rules = json.loads(ended.stdout)
    first = next(one for one in rules if one["code"] == "TW401")
    assert first == {
        "code": "TW401",
        "name": "label-out-of-range",
        "severity": "error",
        "stage": "loss",
        "title": "the model has fewer outputs than there are labels",
        "page": "docs/rules/loss.md#tw401-label-out-of-range",
    }
    documents = Path(__file__).parents[2]
    for one in rules:
        file, _, anchor = one["page"].partition("#")
        headings = re.findall(r"^## (.+)$", (documents / file).read_text("utf-8"), re.MULTILINE)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]
