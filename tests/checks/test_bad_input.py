"""What is typed wrong, and scripts that misbehave: what happened, what to do, the exit status; through the real command."""

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
# A training that works, in pieces that the tests replace.
TRAINING = """\
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed
set_seed(0)
x, y = load_digits(return_X_y=True)
x = ((x - 8) / 8).astype("float32")
class Digits(torch.utils.data.Dataset):
    def __len__(self):
        return 640
    def __getitem__(self, i):
        # item
        return {"x": x[i], "labels": int(y[i])}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    def forward(self, x, labels=None):
        # forward
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
args = TrainingArguments("out", report_to="none", save_strategy="no", use_cpu=True, learning_rate=1e-2,
                         per_device_train_batch_size=32, num_train_epochs=2, disable_tqdm=True)
# before
trainer = Trainer(Net(), args, train_dataset=Digits())
trainer.train()
# after
"""


def training(**pieces: str) -> str:
    """The script with some of its comments replaced by code (indented like the comment)."""
    text = TRAINING
    for name, code in pieces.items():
        line = next(one for one in text.split("\n") if one.strip() == f"# {name}")
        indent = line[: len(line) - len(line.lstrip())]
        text = text.replace(line, textwrap.indent(textwrap.dedent(code).strip("\n"), indent), 1)
    return text


def environment() -> dict[str, str]:
    return {
        **os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200", "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join([str(TESTS / "helpers"), os.environ.get("PYTHONPATH", "")]), "PYTHONUNBUFFERED": "1",
    }  # fmt: skip


def command(folder: Path, *words: str, stdin: str = "", status: int | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "trainwright", *words],
        cwd=folder, input=stdin, capture_output=True, text=True, timeout=300, env=environment(),
    )  # fmt: skip
    if status is not None:
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "internal error in Trainwright" not in done.stderr, done.stderr
    assert "Internal errors in Trainwright" not in done.stdout, done.stdout
    return done


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), 1) if part in line)


@pytest.fixture
def script(tmp_path):
    def write(text: str, name: str = "train.py") -> str:
        (tmp_path / name).write_text(textwrap.dedent(text))
        return name

    return write


# Wrong usage


def test_a_file_that_does_not_exist(tmp_path):
    done = command(tmp_path, "check", "absent.py", status=2)
    assert "absent.py" in done.stderr
    assert "there is no file absent.py" in done.stderr


def test_a_folder_instead_of_a_script(tmp_path):
    (tmp_path / "project").mkdir()
    done = command(tmp_path, "check", "project", status=2)
    assert "project is a folder; name a Python script." in done.stderr
    assert "-m" in done.stderr


def test_a_file_that_is_not_python(tmp_path, script):
    done = command(tmp_path, "check", script("# Notes\n\nTrain well.\n", "notes.md"), status=2)
    assert "notes.md must be a Python script" in done.stderr


def test_a_module_that_does_not_exist(tmp_path):
    done = command(tmp_path, "check", "-m", "no_such_module", status=2)
    assert "no_such_module" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_script_and_unknown_options(tmp_path, script):
    missing = command(tmp_path, "check", status=2).stderr
    assert "SCRIPT" in missing
    assert "--script" not in missing
    assert "--bugdet" in command(tmp_path, "check", "--bugdet", "3", script("pass"), status=2).stderr
    assert "fast" in command(tmp_path, "check", "--budget", "fast", script("pass"), status=2).stderr


def test_a_rule_that_does_not_exist_cannot_be_ignored(tmp_path, script):
    done = command(tmp_path, "check", "--ignore", "no-such-rule", script("print('ran')"), status=2)
    assert "no-such-rule" in done.stderr
    assert "trainwright rules" in done.stderr
    assert "ran" not in done.stdout


@pytest.mark.parametrize("budget", ["0", "-3", "nan", "inf"])
def test_a_budget_that_is_no_time(tmp_path, script, budget):
    done = command(tmp_path, "check", f"--budget={budget}", script("print('ran')"), status=2)
    assert "--budget must be a positive number of seconds" in done.stderr
    assert "ran" not in done.stdout


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            "[tool.trainwright]\nignroe = ['label-out-of-range']",
            "takes budget, ignore, per-file-ignores, samples, select; got ignroe",
        ),
        ("[tool.trainwright]\nignore = 'label-out-of-range'", "must be a list of names or codes of rules"),
        ("[tool.trainwright]\nignore = ['no-such-rule']", "no-such-rule"),
        ("[tool.trainwright]\nbudget = '10 s'", "must be a positive number of seconds; got '10 s'"),
        ("[tool.trainwright]\nbudget = 0", "must be a positive number of seconds; got 0"),
        ("tool.trainwright = 3", "must be a table"),
        ("tool = 3", "must be a table"),
        ("[tool.trainwright", "must be valid TOML"),
    ],
)
def test_settings_that_cannot_be_meant(tmp_path, script, settings, said):
    (tmp_path / "pyproject.toml").write_text(settings)
    done = command(tmp_path, "check", script("print('ran')"), status=2)
    assert "pyproject.toml" in done.stderr
    assert said in done.stderr
    assert "ran" not in done.stdout


def test_a_report_cannot_be_written_where_there_is_no_folder(tmp_path, script):
    done = command(tmp_path, "check", "--json", "absent/report.json", script("print('ran')"), status=2)
    assert "absent/report.json must be in an existing folder" in done.stderr
    assert "ran" not in done.stdout
    assert "is a folder" in command(tmp_path, "check", "--html", str(tmp_path), script("pass"), status=2).stderr
    assert "both" in command(tmp_path, "check", "--json", "-", "--html", "-", script("pass"), status=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "check needs a SCRIPT"),
        (["run", "--seed", "3"], "run needs a SCRIPT"),
        (["check", "tran.py"], "Did you mean train.py?"),
        (["check", "project.fit"], "trainwright check -m project.fit"),
        (["check", "project"], "It contains project/train.py, project/fit.py."),
        (["check", "train.sh"], "trainwright check -- python train.py --lr 1"),
        (["check", "-m", "train.py"], "leave out -m"),
        (["check", "launch"], "must begin with one of python, accelerate launch"),
        (["check", "a" * 256 + ".py"], "there is no file aaa"),
        (["check", "torchrun it's.py"], "No closing quotation"),
        (["check", "--", "accelerate", "config"], "only `accelerate launch` starts a training"),
    ],
)
def test_wrong_usage_is_told_with_what_to_write(tmp_path, script, words, said):
    (tmp_path / "project").mkdir()
    for name in ("project/fit.py", "project/train.py", "project/__init__.py"):
        script("print('ran')", name)
    script("print('ran')")
    script("#!/bin/sh\nset -e\npython train.py --lr 1\n", "train.sh")
    done = command(tmp_path, *words, status=2)
    assert said in done.stderr and "ran" not in done.stdout and "Traceback" not in done.stderr


def on_a_terminal(folder: Path, *words: str) -> str:
    """What a command writes to standard error where that is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "trainwright", *words], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=theirs, env=environment()) as process:  # fmt: skip
        os.close(theirs)
        written = b""
        with contextlib.suppress(OSError):  # the other end was closed
            while part := os.read(ours, 4096):
                written += part
        process.wait(300)
    os.close(ours)
    return written.decode()


def test_a_terminal_is_told_at_once_what_runs_and_a_pipe_is_not(tmp_path, script):
    name = script("print('from the script')")
    told = on_a_terminal(tmp_path, "check", name)
    assert told.startswith("\x1b[2mchecking train.py") or told.startswith("checking train.py")
    assert "from the script" not in told
    piped = command(tmp_path, "check", name, status=2)
    assert "running" not in piped.stdout + piped.stderr


# Scripts that do not reach training


def test_a_syntax_error_is_placed(tmp_path, script):
    done = command(tmp_path, "check", script("rate = 3\nbatch = (4\nprint(rate)\n"), status=1)
    assert "train.py:2" in done.stdout
    assert "SyntaxError: '(' was never closed" in done.stdout
    lines = [line.strip("│ ") for line in done.stdout.split("\n")]
    assert lines[lines.index("batch = (4") + 1] == "^"
    assert "runpy" not in done.stdout


def test_bytes_that_are_no_source(tmp_path):
    (tmp_path / "train.py").write_bytes(b"\x80\x81\x00print()")
    done = command(tmp_path, "check", "train.py", status=1)
    assert "train.py" in done.stdout


def test_an_exception_before_training_shows_the_users_frames_only(tmp_path, script):
    text = "def load(name):\n    return {}[name]\n\nload('train')\n"
    done = command(tmp_path, "check", script(text), status=1)
    assert "KeyError: 'train'" in done.stdout
    assert "train.py:4" in done.stdout
    assert "train.py:2 in load: return {}[name]" in done.stdout
    assert "The script ended before it reached training." in done.stdout
    assert "runpy" not in done.stdout + done.stderr
    assert "trainwright/rehearsal" not in done.stdout + done.stderr


def test_an_error_is_shown_from_its_first_line_and_explained(tmp_path, script):
    """torch.load's message has words in bold type, which is how Keras marks what is telling."""
    text = "import numpy, torch\ntorch.save(numpy.zeros(3), 'rows.pt')\ntorch.load('rows.pt')\n"
    said = command(tmp_path, "check", script(text), status=1).stdout
    said = " ".join(line.strip("│ ") for line in said.split("\n"))
    assert "UnpicklingError: Weights only load failed. This file can still be loaded" in said
    assert "fix Since version 2.6, `torch.load` reads only tensors" in " ".join(said.split())


def test_a_script_without_a_training(tmp_path, script):
    done = command(tmp_path, "check", script("print('hello')"), status=2)
    said = " ".join(done.stdout.split())
    assert "without reaching a training call" in said and "so nothing was checked" in said
    assert "(it printed: hello)" in said


def test_a_script_that_ends_itself(tmp_path, script):
    done = command(tmp_path, "check", script("import sys\nsys.exit('no data')"), status=2)
    said = " ".join(done.stdout.split())
    assert "The script did not reach its training: it ends itself, saying 'no data', so nothing was checked" in said


def test_an_interruption_before_training(tmp_path, script):
    done = command(tmp_path, "check", script("raise KeyboardInterrupt"), status=130)
    assert (done.stdout, done.stderr) == ("", "trainwright: interrupted.\n")


def test_a_script_that_asks_for_typed_input_is_told_that_a_check_has_none(tmp_path, script):
    done = command(tmp_path, "check", script("print('read', input())\n1 / 0"), stdin="seven\n", status=2)
    said = " ".join(done.stdout.split())
    assert "The script did not reach its training: it asks for typed input, so nothing was checked" in said


def test_a_script_that_changes_its_directory_is_placed_and_its_files_are_found(tmp_path, script):
    (tmp_path / "elsewhere").mkdir()
    text = "import os\nos.chdir('elsewhere')\nopen(__file__).close()\n1 / 0  # here\n"
    done = command(tmp_path, "check", "--json", "report.json", script(text), status=1)
    assert "train.py:4 in <module>: 1 / 0  # here" in done.stdout
    assert (tmp_path / "report.json").exists()


def test_what_follows_the_script_is_its_own(tmp_path, script):
    text = """\
        import argparse, sys
        parser = argparse.ArgumentParser()
        for name in ("--json", "--budget", "-m"):
            parser.add_argument(name)
        parser.add_argument("rest", nargs="*")
        print(sys.argv[0].endswith("train.py"), __name__, parser.parse_args())
        """
    done = command(
        tmp_path, "check", "--budget", "5", script(text), "--json", "a.json", "-m", "x", "--budget=2", "z", status=2
    )
    assert "True __main__ Namespace(json='a.json', budget='2', m='x', rest=['z'])" in " ".join(done.stdout.split())
    assert not (tmp_path / "a.json").exists()


def test_a_script_that_is_called_wrongly_itself(tmp_path, script):
    text = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--rows', required=True)\nparser.parse_args()"
    done = command(tmp_path, "check", script(text), status=2)
    why = "it refuses its arguments (it printed: train.py: error: the following arguments are required: --rows), so nothing"
    assert why in " ".join(done.stdout.split())


def test_a_chatty_script_leaves_standard_output_to_the_report(tmp_path, script):
    text = """\
        import atexit, os, subprocess, sys
        print("chatter")
        os.write(1, b"chatter by descriptor\\n")
        sys.__stdout__.write("chatter past redirection\\n")
        subprocess.run([sys.executable, "-c", "print('chatter of a child')"])
        atexit.register(print, "chatter at exit")
        1 / 0
        """
    done = command(tmp_path, "check", "--json", "-", script(text), status=1)
    report = json.loads(done.stdout)
    assert report["failure"]["type"] == "ZeroDivisionError"
    assert report["failure"]["where"]["line"] == 7
    assert "chatter of a child" not in done.stderr


# Trainings that misbehave


def test_the_second_training_is_checked_and_the_first_prints_nothing(tmp_path, script):
    after = "print('trained', trainer.state.global_step)\nsecond = Trainer(Net(), args, train_dataset=Digits())\nsecond.train()"
    text = training(after=after)
    done = command(tmp_path, "check", script(text), status=0)
    assert "trainings all 2: not shown" in " ".join(done.stdout.split())  # nothing is evaluated
    assert "trained 40" not in done.stdout


def test_run_checks_and_trains_both(tmp_path, script):
    after = """
        print("first", trainer.state.global_step)
        second = Trainer(Net(), args, train_dataset=Digits())
        second.train()
        print("second", second.state.global_step)
        """
    done = command(tmp_path, "run", "--json", "report.json", script(training(after=after)), status=0)
    assert done.stdout.count("nothing found") == 1
    assert len(json.loads((tmp_path / "report.json").read_text())["sheet"]["trainings"]) == 2
    assert "first 40" in done.stdout
    assert "second 40" in done.stdout
    assert "did not check" not in done.stdout


def test_a_data_set_that_raises_at_an_item(tmp_path, script):
    text = training(item="if i == 7:\n    raise ValueError('row 7 is torn')")
    done = command(tmp_path, "check", script(text), status=1)
    assert "row 7 is torn" in done.stdout
    assert f"train.py:{line_of(text, 'row 7 is torn')}" in done.stdout


def test_data_that_hold_nan(tmp_path, script):
    done = command(tmp_path, "check", script(training(before="x[11, 3] = np.nan\nx[600] = np.nan")), status=1)
    assert "nothing found" not in done.stdout


def test_a_model_that_raises(tmp_path, script):
    text = training(forward="raise RuntimeError('not today') from KeyError('why')")
    done = command(tmp_path, "check", "--json", "report.json", script(text), status=1)
    assert "not today" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert [s["status"] for s in report["stages"]][:5] == ["passed", "passed", "passed", "failed", "skipped"]
    assert report["failure"]["causes"] == ["KeyError: 'why'"]
    assert report["failure"]["where"]["line"] == line_of(text, "not today")


def test_handlers_around_the_training_do_not_stop_the_check(tmp_path, script):
    text = training().replace(
        "trainer.train()",
        "try:\n    trainer.train()\nexcept Exception as error:\n    print('caught', error)\nfinally:\n    print('closing')",
    )
    done = command(tmp_path, "check", script(text), status=0)
    assert "caught" not in done.stdout
    assert "training: Digits, all 640 rows drawn" in done.stdout


def test_a_module(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "__init__.py").write_text("")
    (tmp_path / "project" / "fit.py").write_text(
        "import sys\nassert (__name__, sys.argv[1:]) == ('__main__', ['--epochs', '3'])\n" + training()
    )
    done = command(tmp_path, "check", "-m", "project.fit", "--epochs", "3", status=0)
    assert "nothing found" in done.stdout


def test_a_module_of_an_installed_package_is_the_users(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "installed_project"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    shutil.copy(Path(__file__).parents[1] / "healthy" / "loops" / "digits_cnn.py", package / "fit.py")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")]))
    done = command(tmp_path, "check", "-m", "installed_project.fit", status=0)
    assert "nothing found" in done.stdout


def _takes_interrupts():
    """A shell starts background jobs with interrupts ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interruption_of_the_check_gives_the_report_so_far(tmp_path, script):
    text = training(forward=(
        "import builtins, os, signal\n"
        "builtins.calls = getattr(builtins, 'calls', 0) + 1\n"
        "if builtins.calls == 6:\n"
        "    os.kill(os.getpid(), signal.SIGINT)"
    ))  # fmt: skip
    words = [sys.executable, "-m", "trainwright", "check", "--json", "report.json", script(text)]
    process = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment(), timeout=120,
                             preexec_fn=_takes_interrupts)  # fmt: skip
    out, err = process.stdout, process.stderr
    assert process.returncode == 130, out + err
    assert "Interrupted: the report shows the results so far." in out
    report = json.loads((tmp_path / "report.json").read_text())
    status = {s["stage"]: s["status"] for s in report["stages"]}
    assert status["batch"] == "passed"
    assert status["overfit"] == "skipped"
    assert "Traceback" not in err


def test_run_ends_with_the_scripts_own_exit_status(tmp_path, script):
    command(tmp_path, "run", script(training(after="raise SystemExit(7)")), status=7)


def test_run_does_not_train_what_is_faulty(tmp_path, script):
    text = training(forward="raise RuntimeError('not today')", after="print('trained on')")
    done = command(tmp_path, "run", script(text), status=1)
    assert "trained on" not in done.stdout


def test_help_and_import_load_no_framework():
    code = """
        import sys
        import trainwright
        from trainwright.cli import main
        sys.argv = ["trainwright", "--help"]
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
        loaded = {"torch", "transformers", "tensorflow", "keras", "jax", "lightning", "accelerate", "datasets", "pandas"}
        assert not loaded & set(sys.modules), loaded & set(sys.modules)
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, timeout=60)
