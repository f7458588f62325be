"""A console whose encoding lacks our characters gets a report all the same, and files are UTF-8."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from trainwright.console import plain

pytestmark = pytest.mark.slow

SCRIPT = '''"""Three classes and two outputs, told in Grüßen."""
import torch
from torch import nn

print("λ = 0.1 für Ätna ✓ 日本")
x = torch.randn(96, 5)
y = x[:, :3].argmax(1)
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):  # ünïcödé
    for i in range(0, 96, 16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[i : i + 16]), y[i : i + 16])
        loss.backward()
        optimizer.step()
'''
CONSOLES = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "c-locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}
COMMANDS = {
    "check": ["check", "--json", "r.json", "--html", "r.html", "träin.py"],
    "rules": ["rules"],
    "explain": ["explain", "label-out-of-range"],
    "help": ["--help"],
    "lm": ["lm", "--help"],
    "lm train": ["lm", "train", "--help"],
    "usage": ["check", "schön.py"],
    "option": ["check", "--nöpe", "x.py"],
}
STATUS = {"check": 1, "usage": 2, "option": 2}


def _environment(console):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHONIO", "PYTHONUTF8"))}
    return {**kept, "COLUMNS": "80", **CONSOLES[console]}


def _command(name):
    return [sys.executable, "-m", "trainwright", *COMMANDS[name]]


def _assert_shown(name, console, status, text):
    assert status == STATUS.get(name, 0), text
    assert b"Traceback" not in text and b"Internal errors" not in text, text
    text = text.replace("träin.py".encode(), b"train.py")  # the C locale keeps the bytes of names
    shown = text.decode("cp1252" if console == "cp1252" else "ascii")  # nothing that the encoding lacks
    if name == "check":
        assert "label-out-of-range" in shown and "~ 4 loss" in shown and "+ 1 dataset" in shown
        assert "fixed in memory" in shown
        # What the script itself prints there ends it, as it does without a check; what comes behind is seen all the same.
        assert "the script stops with UnicodeEncodeError" in " ".join(shown.split())
    else:
        assert "UnicodeEncodeError" not in shown
    if name == "rules":
        assert "TW401" in shown


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "träin.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "console"),
    [*((name, "ascii") for name in COMMANDS), *(("check", c) for c in CONSOLES if c != "ascii"), ("rules", "cp1252")],
)
def test_a_pipe_of_any_encoding_gets_what_is_said(name, console, folder: Path) -> None:
    ended = subprocess.run(_command(name), cwd=folder, env=_environment(console), capture_output=True, check=False)
    _assert_shown(name, console, ended.returncode, ended.stdout + ended.stderr)
    if name == "check":
        report = json.loads((folder / "r.json").read_text("utf-8"))
        assert report["script"] == "träin.py" and not report["internal_errors"]
        assert "✓" in (folder / "r.html").read_text("utf-8")


@pytest.mark.parametrize("console", CONSOLES)
def test_a_file_of_any_encoding_gets_the_report(console, folder: Path) -> None:
    with (folder / "out.txt").open("wb") as out:
        ended = subprocess.run(
            _command("check"), cwd=folder, env=_environment(console), stdout=out, stderr=out, check=False
        )
    _assert_shown("check", console, ended.returncode, (folder / "out.txt").read_bytes())


@pytest.mark.parametrize("console", CONSOLES)
def test_a_terminal_of_any_encoding_gets_the_report(console, folder: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        _command("check"), cwd=folder, env={**_environment(console), "TERM": "dumb"}, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end was closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    _assert_shown("check", console, process.wait(), seen)


def test_a_traceback_in_another_encoding_is_explained(folder: Path) -> None:
    text = "für\nIndexError: Target 3 is out of bounds."
    ended = subprocess.run(
        [sys.executable, "-m", "trainwright", "explain", "-"], input=text.encode(), cwd=folder,
        env=_environment("ascii"), capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0 and b"TW401" in ended.stdout, ended.stdout + ended.stderr


def test_stand_ins_keep_boxes_as_wide_as_they_were() -> None:
    assert plain("╭─┬╮│✓é⠋") == "+-++|+?*"
    assert plain("f(…)") == "f(...)"
