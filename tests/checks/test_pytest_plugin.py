"""The pytest plugin: scripts as tests, and the fixture assert_learns. assert_same_rows: tests/unit/test_same_rows.py."""

import importlib.metadata
import signal
from dataclasses import replace
from pathlib import Path

import pytest

import trainwright
from trainwright import pytest_plugin
from trainwright.core import Place, Report, Shown, StageRun, Verdict
from trainwright.core.finding import Finding, Severity
from trainwright.core.report import Status
from trainwright.core.stage import Stage
from trainwright.report import json, terminal

pytest_plugins = "pytester"
LOADED = terminal  # pytester forgets what is first imported within it, of which rich must not be there twice
IS_INSTALLED = "trainwright" in importlib.metadata.entry_points(group="pytest11").names
PLUGIN = () if IS_INSTALLED else ("-p", "trainwright.pytest_plugin")
IMPORTED = "raise SystemExit('a script is no module of tests')\n"
LEARNS = Report(
    script="train.py",
    verdict=Verdict(shown=Shown.LEARNS, why="300 rows are right at 0.9"),
    stages=(StageRun(stage=Stage.FORWARD, status=Status.PASSED),),
    begins=Place("train.py", 1),
)
WARNED = replace(
    LEARNS,
    findings=(
        Finding(
            message="class 8 is never answered",
            where=Place("train.py", 1),
            code="TW1014",
            name="unlearned-part",
            severity=Severity.WARNING,
        ),
    ),
)
NO_TRAINING = Report(script="train.py", message="The script ended without reaching a training.")


@pytest.fixture
def project(pytester):
    """A project with one script in its settings, which must never be imported."""
    pytester.makeini("[pytest]\ntrainwright_scripts =\n    train.py --epochs 3\n    train.py\ntestpaths = tests\n")
    Path("train.py").write_text(IMPORTED)
    Path("tests").mkdir()
    Path("tests/test_own.py").write_text("def test_own(): pass\n")
    return pytester


class Ended:
    """A process of the command that has ended."""

    commands: list = []  # noqa: RUF012
    report, status = LEARNS, 0

    def __init__(self, command, env, **_):
        self.commands.append(command)
        assert not env.get("FORCE_COLOR")
        self.returncode = self.status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def communicate(self):
        return json.render(self.report), f"loaded\ntrainwright {self.report.script}: …"


def check(project, monkeypatch, report, status, *options):
    """What pytest says of a script of which the command gives this report."""
    monkeypatch.setattr(Ended, "commands", [])
    monkeypatch.setattr(Ended, "report", report)
    monkeypatch.setattr(Ended, "status", status)
    monkeypatch.setattr(pytest_plugin, "Popen", Ended)
    return project.runpytest_inprocess(*PLUGIN, "--trainwright", "-rA", *options)


def test_scripts_are_items_and_are_not_imported(project):
    options = (*PLUGIN, "--collect-only", "-q")
    both = ["train.py::trainwright[[]--epochs 3[]]", "train.py::trainwright"]
    project.runpytest_inprocess(*options).stdout.no_fnmatch_line("train.py*")
    project.runpytest_inprocess(*options, "--trainwright").stdout.fnmatch_lines(["tests/test_own.py::test_own", *both])
    project.runpytest_inprocess(*options, "--trainwright", "-m", "trainwright").stdout.fnmatch_lines(both)
    project.runpytest_inprocess(*options, "--trainwright", "-k", "epochs").stdout.fnmatch_lines(both[:1])
    project.runpytest_inprocess(*options, "--trainwright", "train.py").stdout.fnmatch_lines(both)
    project.runpytest_inprocess(*options, "--trainwright", ".").stdout.fnmatch_lines(both)
    named = project.runpytest_inprocess(*options, "--trainwright", "train.py::trainwright[--epochs 3]")
    named.stdout.fnmatch_lines([both[0], "*1 test collected*"])


def test_a_script_that_learns_passes(project, monkeypatch):
    options = ("--trainwright-budget", "9", "--trainwright-require-learning")
    check(project, monkeypatch, LEARNS, 0, *options).assert_outcomes(passed=3)
    assert Ended.commands[0][-6:] == ["--require-learning", "--budget", "9", "train.py", "--epochs", "3"]


def test_a_warning_fails_at_its_line(project, monkeypatch):
    ended = check(project, monkeypatch, WARNED, 1, "train.py")
    ended.assert_outcomes(failed=2)
    ended.stdout.fnmatch_lines(
        ["*train.py::trainwright*", "train.py:1: It learns: 300 rows *", "*First cause: TW1014*", "*> 1 raise *"]
    )
    ended.stdout.fnmatch_lines(["FAILED train.py::trainwright - *train.py:1: It learns*"])


def test_no_training_is_an_error(project, monkeypatch):
    ended = check(project, monkeypatch, NO_TRAINING, 2, "train.py")
    ended.assert_outcomes(errors=2)
    ended.stdout.fnmatch_lines(["*ERROR at setup of train.py::trainwright*", "*without reaching a training*", "loaded"])


def test_a_script_that_is_not_there_is_named(project):
    Path("train.py").unlink()
    ended = project.runpytest_inprocess(*PLUGIN, "--trainwright")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(["*file or directory not found: *train.py"])


def test_a_script_above_the_root_folder_is_found(pytester):
    Path("root").mkdir()
    Path("my train.py").write_text(IMPORTED)
    Path("root/pytest.ini").write_text("[pytest]\ntrainwright_scripts = '../my train.py' --name 'a b'\n")
    ended = pytester.runpytest_inprocess(
        *PLUGIN, "--trainwright", "--collect-only", "-q", "--rootdir=root", "-c", "root/pytest.ini"
    )
    ended.stdout.fnmatch_lines(["*my train.py::trainwright[[]--name 'a b'[]]"])


def test_a_line_that_is_no_command_line_is_named(pytester):
    pytester.makeini("[pytest]\ntrainwright_scripts = train.py --name it's\n")
    ended = pytester.runpytest_inprocess(*PLUGIN, "--trainwright")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(["*No closing quotation*it's"])


def test_colours_that_are_forced_stay_out_of_a_report(project, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    ended = check(project, monkeypatch, WARNED, 1, "train.py")
    ended.stdout.fnmatch_lines(["train.py:1: It learns: 300 rows *", "*First cause: TW1014*"])
    assert "\x1b[1mtrainwright" not in ended.stdout.str()


def test_scripts_are_asked_for(pytester):
    ended = pytester.runpytest_inprocess(*PLUGIN, "--trainwright")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(["*trainwright_scripts*"])


def test_an_interrupt_ends_the_check(project, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    signals = []
    monkeypatch.setattr(Ended, "communicate", interrupt)
    monkeypatch.setattr(Ended, "send_signal", lambda self, number: signals.append(number), raising=False)
    monkeypatch.setattr(Ended, "wait", lambda self, seconds: None, raising=False)
    with pytest.raises(KeyboardInterrupt):  # as pytester tells of it
        check(project, monkeypatch, LEARNS, 0, "train.py")
    assert signals == [signal.SIGINT] * 2


def test_a_real_script_is_checked(pytester):
    pytester.makeini("[pytest]\ntrainwright_scripts = train.py\n")
    Path("train.py").write_text(SCRIPT)
    ended = pytester.runpytest_subprocess(*PLUGIN, "--trainwright", "--trainwright-require-learning")
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(["train.py:*: It is broken: *", "*First cause: TW501 uncleared-gradients*"])


def test_objects_that_learn(pytester):
    pytester.makepyfile(test_it=OBJECTS)
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "report",
    [
        WARNED,
        NO_TRAINING,
        replace(LEARNS, verdict=Verdict(shown=Shown.NOT_SHOWN, why="no held-out labels")),
        replace(LEARNS, verdict=Verdict(shown=Shown.LEARNS_IN_PART, why="one of two")),
        replace(LEARNS, verdict=Verdict(shown=Shown.CANNOT_BE_JUDGED, why="no answers were seen")),
    ],
)
def test_objects_that_were_not_shown_to_learn(pytester, monkeypatch, report):
    monkeypatch.setattr(trainwright, "check", lambda *given, **named: report)
    pytester.makepyfile(test_it="def test_learns(assert_learns):\n    assert_learns(model=1)\n")
    ended = pytester.runpytest_inprocess(*PLUGIN)
    ended.assert_outcomes(failed=1)
    told = report.verdict.why if report.verdict else report.message
    ended.stdout.fnmatch_lines([">   *assert_learns(model=1)", f"E*{told}*"])


def test_arguments_without_a_name_are_refused(pytester):
    pytester.makepyfile(test_it="def test_learns(assert_learns):\n    assert_learns(1, 2, 3, 4, 5)\n")
    pytester.runpytest_inprocess(*PLUGIN).stdout.fnmatch_lines(
        ["E *UsageError: *model, loader, loss, optimizer*got 5*"]
    )


OBJECTS = """
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def test_learns(assert_learns):
    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
    train, held = (DataLoader(part, batch_size=32, shuffle=True) for part in random_split(data, [1400, 397]))
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    report = assert_learns(model, train, nn.CrossEntropyLoss(), optimizer, evaluation_loader=held)
    assert report.script.endswith("test_it.py") and report.begins.line == 14
"""
SCRIPT = """
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(60):
    rows = torch.randperm(1400)[:64]
    nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
    optimizer.step()
"""
