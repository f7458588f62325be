"""The GitHub Action and the hook of pre-commit that the repository offers, run as their runners do."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
SCRIPT = """\
import sys
import torch

print("::notice::of the script")
torch.manual_seed(0)
rows = torch.randn(96, 4)
labels = (rows[:, 0] > 0).long()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=float(sys.argv[2]))
assert sys.argv[1] == "--learning rate", sys.argv
for start in range(0, 96, 16):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(rows[start : start + 16]), labels[start : start + 16])
    loss.backward()
    optimzer.step()
"""


def run_action(here, **inputs):
    """Run the steps as a runner does, up to one that fails: its exit status, what it printed, and its outputs."""
    temporary = here / "temp"
    temporary.mkdir()
    known = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    files = {name: here / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    printed = []
    for number, step in enumerate(ACTION["runs"]["steps"]):
        assert "${{" not in step["run"]  # an input is no code
        asked = {name: _fill(text, known) for name, text in step["env"].items()}
        script = temporary / f"step{number}.sh"
        script.write_text(step["run"], "utf-8")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=here / _fill(step.get("working-directory", "."), known),
            env={
                **os.environ,
                **{name: str(file) for name, file in files.items()},
                "RUNNER_TEMP": str(temporary),
                "GITHUB_ACTION_PATH": str(ROOT),
                **asked,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        printed.append(done)
        if done.returncode:
            break
    written = files["GITHUB_OUTPUT"]
    lines = written.read_text("utf-8").splitlines() if written.exists() else []
    outputs = dict(line.split("=", 1) for line in lines)
    return printed[-1], outputs, files["GITHUB_STEP_SUMMARY"]


def _fill(text, inputs):
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)


def test_the_action_annotates_sums_up_and_writes_sarif(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "train.py").write_text(SCRIPT, "utf-8")
    inputs = {"python": sys.executable, "working-directory": "models", "script": "train.py", "budget": "20"}
    done, outputs, summary = run_action(tmp_path, **inputs, arguments="'--learning rate' 0.1", options="--seed 1")
    assert done.returncode == 1, done.stderr
    first, *others = done.stdout.splitlines()
    assert first.startswith("::error file=models/train.py,line=15,title=TW1001 script-stopped::")
    assert [line[:9] for line in others] == ["::notice "]
    assert "of the script" not in done.stderr and "First cause: TW1001" in done.stderr
    sarif = tmp_path / "models" / "trainwright.sarif"
    assert outputs == {
        "status": "1",
        "verdict": "broken",
        "report": str(tmp_path / "temp" / "trainwright.json"),
        "sarif": str(sarif),
    }
    assert set(outputs) == set(ACTION["outputs"])
    run = json.loads(sarif.read_text("utf-8"))["runs"][0]
    assert run["invocations"][0]["exitCode"] == 1
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "models/train.py" and place["region"]["startLine"] == 15
    (change,) = run["results"][0]["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"]["text"] == "    optimizer.step()"
    text = summary.read_text("utf-8")
    assert text.startswith("### trainwright train.py: 1 error") and "+    optimizer.step()" in text


def test_an_action_with_a_wrong_input_fails_with_the_reason(tmp_path):
    done, outputs, summary = run_action(tmp_path, python=sys.executable, script="train.py")
    assert done.returncode == 2 and "there is no file train.py" in done.stderr and done.stdout == ""
    assert outputs == {"status": "2"} and not summary.exists()


def test_an_action_with_an_open_quote_checks_nothing(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT, "utf-8")
    (tmp_path / "trainwright").mkdir()  # a folder is no package that is installed
    done, outputs, _ = run_action(tmp_path, python=sys.executable, script="train.py", arguments="--name 'a")
    assert done.returncode == 1 and "must be quoted as in a shell: No closing quotation" in done.stderr
    assert outputs == {} and "Traceback" not in done.stderr


def git(folder, *words):
    identity = ("-c", "user.name=n", "-c", "user.email=e@e")
    return subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def hooked(tmp_path, monkeypatch):
    """A repository with the hook, which is taken from another one, as pre-commit takes it."""
    hooks, here = tmp_path / "hooks", tmp_path / "here"
    for folder in (hooks, here):
        folder.mkdir()
        git(folder, "init", "--quiet")
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "add", ".")
    git(hooks, "commit", "--quiet", "--message", "hooks")
    hook = {
        "id": "trainwright",
        "args": shlex.split("--budget 20 train.py '--learning rate' 0.1"),
        "files": r"^train\.py$",
    }
    config = {"repos": [{"repo": str(hooks), "rev": git(hooks, "rev-parse", "HEAD"), "hooks": [hook]}]}
    (here / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (here / "train.py").write_text(SCRIPT, "utf-8")
    (here / "other.py").write_text("", "utf-8")
    git(here, "add", ".")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return here


def pre_commit(folder, *words):
    command = [sys.executable, "-m", "pre_commit", "run", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_hook_checks_the_script_that_its_arguments_name_before_a_push(hooked):
    done = pre_commit(hooked, "--hook-stage", "pre-push", "--files", "train.py", "other.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "trainwright check" in done.stdout and "First cause: TW1001 script-stopped" in done.stdout
    assert "deprecated" not in done.stdout + done.stderr
    for words in (("--hook-stage", "pre-push", "--files", "other.py"), ("--files", "train.py")):
        done = pre_commit(hooked, *words)
        assert done.returncode == 0 and "First cause" not in done.stdout, done.stdout
