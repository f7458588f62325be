"""Notebooks and what is exported from them: checked like scripts, with findings in cells."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_bad_input import command

from checks import check_script, said
from trainwright.core import Place, cells
from trainwright.errors import UsageError
from trainwright.report.source import excerpt
from trainwright.seams.scripts import running
from trainwright.seams.scripts.notebook import text_of
from trainwright.seams.scripts.running import Shell

pytestmark = pytest.mark.slow

DATA = """\
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(256, 8)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), batch_size=32)"""
MODEL = """\
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
model"""
UNCLEARED = """\
for epoch in range(3):
    for a, b in loader:
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()"""
HEALTHY = UNCLEARED.replace("        loss =", "        optimizer.zero_grad()\n        loss =")
ARGUMENTS = """\
from transformers import TrainingArguments
# how it is trained
args = TrainingArguments("out", report_to="none", use_cpu=True,
                         evaluation_strategy="epoch")"""


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(*sources: str, name: str = "train.ipynb") -> Path:
        made = [s if not isinstance(s, str) else new_code_cell(s) for s in sources]
        nbformat.write(new_notebook(cells=made), name)
        return Path(name)

    return write


def text(notebook: Path) -> str:
    found = text_of(notebook)
    assert found is not None
    return found


# What is found


def test_a_finding_names_the_cell_and_its_line(notebook):
    heading = new_markdown_cell("# Training")
    report = check_script(notebook(heading, DATA, "", MODEL, f"%%time\n{UNCLEARED}", "raise RuntimeError('later')"))
    first = report.first_cause
    assert first is not None and first.name == "uncleared-gradients", said(report)
    assert str(first.where) == "train.ipynb, cell 3, line 5"
    shown = excerpt(first.where)
    assert [(line.number, line.named) for line in shown] == [(4, False), (5, True), (6, False)]
    assert shown[1].text == "loss.backward()"


def test_the_report_of_a_notebook_through_the_command(notebook, tmp_path):
    notebook(DATA, MODEL, UNCLEARED, HEALTHY)
    done = command(tmp_path, "check", "--json", "report.json", "--diff", "fixes.patch", "train.ipynb", status=1)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["first_cause"]["where"] == {"file": "train.ipynb", "line": 4, "cell": 3}
    assert "train.ipynb, cell 3, line 4" in done.stdout
    assert "a patch cannot edit a notebook" in done.stderr


def test_a_healthy_notebook_is_silent(notebook):
    report = check_script(notebook(DATA, MODEL, HEALTHY))
    assert report.first_cause is None, said(report)
    assert report.start_seconds is not None


def test_a_fix_in_a_cell_is_shown_as_its_diff_and_verified(notebook, tmp_path):
    later = "\n".join([DATA, MODEL, HEALTHY])
    (tmp_path / "below").mkdir()
    notebook("%cd below", ARGUMENTS, later)
    done = command(tmp_path, "check", "--verify", "--json", "report.json", "train.ipynb", status=1)
    finding = json.loads((tmp_path / "report.json").read_text())["first_cause"]
    assert (finding["where"]["cell"], finding["where"]["line"]) == (2, 4)
    assert finding["fix"]["verified"], done.stdout
    assert "train.ipynb, cell 2\n@@ -3,2 +3,2 @@" in finding["fix"]["diff"]


def test_a_rule_is_silenced_by_a_comment_in_a_cell(notebook):
    allowed = UNCLEARED.replace("loss.backward()", "loss.backward()  # trainwright: allow uncleared-gradients")
    report = check_script(notebook(DATA, MODEL, allowed))
    assert "uncleared-gradients" not in [f.name for f in report.findings]


def test_a_cell_that_raises_and_one_that_is_no_python(notebook):
    raised = check_script(notebook("x = 1", "def f():\n    return 1 / 0\nf()"))
    assert raised.failure is not None and str(raised.failure.where) == "train.ipynb, cell 2, line 2"
    broken = check_script(notebook("x = 1", "y = 2\nz = (3\n"))
    assert broken.failure is not None and broken.failure.type == "SyntaxError"
    assert str(broken.failure.where) == "train.ipynb, cell 2, line 2"


def test_a_broken_cell_behind_the_training_is_what_stops_the_notebook(notebook):
    report = check_script(notebook(DATA, MODEL, HEALTHY, "print('never'\n", "await never"))
    assert report.first_cause is not None and report.first_cause.name == "script-stopped", said(report)
    assert str(report.first_cause.where) == "train.ipynb, cell 4, line 1"


def test_top_level_await_is_refused_with_its_reason(notebook, tmp_path):
    notebook("import asyncio", "x = 1\nawait asyncio.sleep(0)")
    done = command(tmp_path, "check", "train.ipynb", status=2)
    assert "train.ipynb, cell 2, line 2: `await` outside of a function" in done.stderr
    assert "asyncio.run" in done.stderr


# Magics and commands


def test_magics_and_commands_are_honoured_or_skipped(notebook, tmp_path, capfd):
    (tmp_path / "below").mkdir()
    one = """\
!pip install nothing-of-that-name
%pip install nothing-of-that-name
%matplotlib inline
%load_ext autoreload
%autoreload 2
%env GREETING=hello
name = "there"
!echo $GREETING {name} > said
listed = !echo one; echo two
%cd -q below
%some_magic of mine"""
    two = "%%capture kept\nprint('seen')\n%time y = 3"
    three = "%%writefile rows.py\nROWS = 7\n"
    four = "%%bash\nexit 1"
    five = "import os, rows\nassert (listed, rows.ROWS, y, os.environ['GREETING']) == (['one', 'two'], 7, 3, 'hello')\n"
    five += "display(rows.ROWS); assert open('../said').read() == 'hello there\\n'"
    notebook(one, two, three, four, five, "pip install more", "kept.show()\nraise RuntimeError(os.getcwd())")
    done = command(tmp_path, "check", "train.ipynb", status=1)
    assert f"RuntimeError: {tmp_path / 'below'}" in done.stdout, done.stdout + done.stderr
    shown = " ".join(done.stdout.split())
    for skipped in ("!pip install nothing-of-that-name was skipped: a check installs nothing",
                    "%pip install nothing-of-that-name was skipped", "%some_magic of mine was skipped",
                    "a cell of %%bash was skipped", "%pip install more was skipped"):  # fmt: skip
        assert skipped in shown
    assert "matplotlib" not in shown and "autoreload" not in shown


@pytest.mark.parametrize(
    ("line", "skipped"),
    [
        ("pip install x", True), ("python -m pip install -q x", True), ("sudo apt-get install -y git", True),
        ("uv pip install x", True), ("conda install -y x", True), ("python train.py --epochs 3", True),
        ("accelerate launch run_glue.py", True), ("torchrun --nproc_per_node 2 x.py", True),
        ("pip --version", False), ("ls data", False), ("python prepare.py", False), ("wget http://x/train.csv", False),
    ],
)  # fmt: skip
def test_commands_that_install_or_train_are_not_run(monkeypatch, line, skipped):
    ran = []
    monkeypatch.setattr(
        subprocess, "run", lambda command, **given: ran.append(command) or subprocess.CompletedProcess(command, 0)
    )
    monkeypatch.setattr(running, "SKIPPED", noted := [])
    Shell("train.ipynb").system(line)
    assert bool(ran) != skipped
    assert any("was skipped" in one for one in noted) == skipped


def test_each_line_of_a_cell_stays_on_its_line(notebook):
    cell = "%env A=b \\\n  c\nx = !ls \\\n   -l\n\n    \ny = 4\nprint?\nz = [\n  1,\n]\n'''\n%cd in a text\n'''"
    written = text(notebook("", "a = 1", cell)).splitlines()
    first = cells.starts("\n".join(written))[2]
    body = written[first - 1 :]
    assert len(body) == len(cell.splitlines())
    assert body[6] == "y = 4" and body[8:11] == ["z = [", "  1,", "]"] and body[12] == "%cd in a text"
    compile("\n".join(written), "train.ipynb", "exec")


def test_a_broken_script_is_no_export(tmp_path):
    script = tmp_path / "train.py"
    for broken in ("x = (1\n", "if x:\n    y\n  z\n", 'text = "a"\n % 3\n', "a b\n%matplotlib inline\n"):
        script.write_text(broken)
        assert text_of(script) is None
    written = text(notebook_of(tmp_path, "if x:\n    y\n  z"))
    assert "get_ipython().refuse(1" in written


def notebook_of(folder: Path, source: str) -> Path:
    nbformat.write(new_notebook(cells=[new_code_cell(source)]), folder / "one.ipynb")
    return folder / "one.ipynb"


def test_future_imports_of_a_later_cell_hold(notebook):
    written = text(notebook("x = 1", "from __future__ import annotations\ndef f(a: Unknown): ..."))
    scope = {}
    exec(compile(written, "train.ipynb", "exec", dont_inherit=True), scope)
    assert scope["f"].__annotations__ == {"a": "Unknown"}


# Exports


def test_an_export_with_get_ipython_is_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    timed = f"get_ipython().run_cell_magic('time', '', {UNCLEARED!r})"
    script = tmp_path / "export.py"
    script.write_text(f"get_ipython().run_line_magic('matplotlib', 'inline')\n# In[1]:\n{DATA}\n{MODEL}\n{UNCLEARED}\n")
    report = check_script(script)
    assert report.first_cause is not None and str(report.first_cause.where) == "export.py:14"
    script.write_text(f"{DATA}\n{MODEL}\n{timed}\n")
    report = check_script(script)
    assert report.first_cause is not None and report.first_cause.name == "uncleared-gradients", said(report)


def test_an_export_with_magics_as_they_stand_is_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "export.py"
    script.write_text(f"# %%\n%matplotlib inline\n!echo hello\n{DATA}\n{MODEL}\n{UNCLEARED}\n")
    report = check_script(script)
    assert report.first_cause is not None and str(report.first_cause.where) == "export.py:15", said(report)


# What is no notebook


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "must be a notebook of format 4"),
        ("[]", "must be a notebook of format 4"),
        ('{"worksheets": []}', "must be a notebook of format 4"),
        ('{"cells": [], "metadata": {"language_info": {"name": "R"}}}', "it is in R"),
    ],
)
def test_files_that_are_no_notebooks_of_python(tmp_path, content, message):
    file = tmp_path / "train.ipynb"
    file.write_text(content)
    with pytest.raises(UsageError, match=message):
        text_of(file)


def test_without_ipython_notebooks_with_magics_say_what_is_missing(notebook, monkeypatch):
    file = notebook("%matplotlib inline")
    plain = notebook("x = 1", name="plain.ipynb")
    monkeypatch.setitem(sys.modules, "IPython.core.inputtransformer2", None)
    with pytest.raises(UsageError, match="pip install ipython"):
        text_of(file)
    assert "x = 1" in text(plain)


def test_run_does_not_train_a_notebook(notebook, tmp_path):
    notebook("print('ran')")
    done = command(tmp_path, "run", "train.ipynb", status=2)
    assert "for a notebook, use trainwright check" in done.stderr and "ran" not in done.stdout


def test_places_of_other_files_are_as_they_were():
    place = Place("other.py", 7)
    assert (str(place), place.in_cell(), place.in_text()) == ("other.py:7", place, place)
