"""A script's own run in a process of its own: what it leaves behind, how long it takes, and how it ends."""

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from trainwright.core import Shown
from trainwright.rehearsal.limits import PATIENCE, TRAINING_SHARE, Limits
from trainwright.rehearsal.memory import MemoryGuard, read_memory
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Imported
from trainwright.rehearsal.request import KERNEL, PYTHON, Progress
from trainwright.review.review import review
from trainwright.review.verdict import verdict_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "rehearsed"
SAVING = """
import sqlite3, subprocess, sys
from pathlib import Path

Path("notes.txt").write_text("changed")
Path("gone.txt").unlink()
with sqlite3.connect("runs.db") as runs:
    runs.execute("create table runs (name)")
subprocess.run([sys.executable, "-c", "open('by_a_child.txt', 'w').write('x')"], check=True)
assert Path("notes.txt").read_text() == "changed" and Path("by_a_child.txt").exists() and not Path("gone.txt").exists()
raise LookupError("at the end")
"""
LONG = """
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(1_000_000):
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
        optimizer.step()
    print("epoch", epoch)
torch.save(model.state_dict(), "weights.pt")
model.load_state_dict(torch.load("weights.pt"))
model.save_everything()
"""


def rehearse(script: Path, seconds: float = 30.0, seed: int = 0) -> Record:
    with Rehearsal(script.name, seconds=seconds, seed=seed) as rehearsal:
        return rehearsal.wait()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(here: Path, text: str) -> Path:
    script = here / "train.py"
    script.write_text(text, encoding="utf-8")
    return script


def test_what_a_script_writes_is_seen_by_it_and_thrown_away(here: Path) -> None:
    (here / "notes.txt").write_text("kept")
    (here / "gone.txt").write_text("kept")
    record = rehearse(write(here, SAVING))
    assert record.ended.failure is not None
    assert (record.ended.failure.type, record.ended.failure.message) == ("LookupError", "at the end")
    assert record.ended.failure.where is not None and record.ended.failure.where.line == 11
    assert sorted(path.name for path in here.iterdir()) == ["gone.txt", "notes.txt", "train.py"]
    assert (here / "notes.txt").read_text() == "kept"
    if record.isolation == KERNEL:
        assert record.kept_away == ("4 files",)


def test_a_long_training_is_cut_and_the_script_goes_on_to_its_end(here: Path) -> None:
    record = rehearse(write(here, LONG), seconds=4.0)
    (training,) = record.trainings
    assert training.is_cut and training.ends is not None and training.ends > 100
    assert record.ended.failure is not None and record.ended.failure.type == "AttributeError"
    assert "save_everything" in record.ended.failure.message and not record.ended.is_cut
    assert [one.how for one in record.kept] == ["saved"] and len(record.loaded) == 1
    assert sorted(path.name for path in here.iterdir()) == ["train.py"]


ENDLESS = """
import torch

rows = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
sampler = torch.utils.data.RandomSampler(rows, replacement=True, num_samples=10**9)
batches = iter(torch.utils.data.DataLoader(rows, sampler=sampler, batch_size=8))
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    x, y = next(batches)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def test_a_loader_that_is_asked_by_next_ends_the_script_and_is_no_fault(here: Path) -> None:
    record = rehearse(write(here, ENDLESS), seconds=2.0)
    assert record.trainings[0].is_cut and record.ended.is_cut
    assert record.ended.failure is None and not record.ended.own_error


def test_a_process_that_dies_is_an_observation(here: Path) -> None:
    record = rehearse(write(here, "import os\nos.kill(os.getpid(), 9)\n"))
    assert record.ended.status == -9 and record.ended.failure is None


def test_a_script_that_leaves_by_itself_is_recorded(here: Path) -> None:
    record = rehearse(write(here, "import os\nif os.fork():\n    os.wait()\n    os._exit(3)\nos._exit(0)\n"))
    assert record.ended.hindrance == "it ends itself, with status 3"
    assert record.ended.failure is None and record.ended.status is None


SETTING = """
import os

import table

assert "SET_BY_SCRIPT" not in os.environ
os.environ["SET_BY_SCRIPT"] = "1"
import torch

open("notes.txt", "a").write("once")
raise LookupError(f"{torch.ones(2).sum()} {table.MINE} {open('notes.txt').read()} {os.getppid()}")
"""


def test_a_further_run_is_forked_from_a_process_that_has_imported_the_same(here: Path) -> None:
    write(here, SETTING)
    (here / "table.py").write_text("MINE = 1\n")
    with Rehearsal("train.py", seconds=30.0) as rehearsal:
        first = rehearsal.wait()
        rehearsal.start_again()
        again = rehearsal.wait()
    assert first.imported is not None and "torch" in first.imported.libraries
    assert (first.imported.own, first.imported.environment["SET_BY_SCRIPT"]) == (("table",), "1")
    assert first.ended.failure is not None and again.ended.failure is not None
    *seen, parent = first.ended.failure.message.split()
    assert seen == ["2.0", "1", "once"] and int(parent) == os.getpid()
    *seen_again, other = again.ended.failure.message.split()
    assert seen_again == seen and other != parent


def test_a_module_of_the_scripts_is_never_taken_from_a_library() -> None:
    imported = Imported(libraries=("doctest",), own=("doctest",), environment={})
    with pytest.raises(RuntimeError, match="has ended"), Server((), imported=imported):
        pass


def test_a_script_that_hangs_is_ended(here: Path) -> None:
    with Rehearsal(write(here, "import time\ntime.sleep(1000)\n").name, seconds=30.0) as rehearsal:
        rounds = iter(range(20))
        record = rehearsal.wait(until=lambda: next(rounds, None) is None)
    assert record.ended.is_cut and record.ended.failure is None


def test_typed_input_is_no_fault_of_the_script(here: Path) -> None:
    record = rehearse(write(here, "name = input('run name? ')\n"))
    assert record.ended.failure is None and "typed input" in record.ended.hindrance


def test_without_the_kernel_what_is_written_is_redirected(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    script = write(
        here, "open('out.txt', 'w').write('x')\nassert open('out.txt').read() == 'x'\nraise KeyError('seen')\n"
    )
    record = rehearse(script)
    assert record.isolation == PYTHON
    assert record.ended.failure is not None and record.ended.failure.type == "KeyError"
    assert not (here / "out.txt").exists()


def test_where_memory_runs_short_the_rehearsal_is_ended_and_says_so(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(here, LONG)
    free = [10_000_000_000]

    def read() -> tuple[int, int]:
        return free[0], 20_000_000_000

    monkeypatch.setattr("trainwright.rehearsal.process.MemoryGuard", functools.partial(MemoryGuard, read=read))
    with Rehearsal(script.name, seconds=100) as rehearsal:

        def note_first(text: str) -> None:
            if "updates" in text:
                free[0] = 1_000_000

        record = rehearsal.wait(note_first)
    assert rehearsal.is_out_of_memory and record.updates and record.ended.is_cut
    verdict = verdict_of(record, [])
    assert verdict.shown == Shown.NOT_SHOWN and "memory ran short" in verdict.why
    known = read_memory()
    assert known is None or 0 < known[0] <= known[1]


def test_each_training_has_a_share_of_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    processor, wall = [0.0], [0.0]
    monkeypatch.setattr("time.process_time", lambda: processor[0])
    monkeypatch.setattr("time.monotonic", lambda: wall[0])
    limits = Limits(100.0)
    processor[0] = wall[0] = 500.0  # the script's start
    assert not limits.is_training_over and limits.elapsed == 0
    limits.begin_training()
    processor[0] += 100 * TRAINING_SHARE - 1
    assert not limits.is_training_over
    processor[0] += 1
    assert limits.is_training_over and limits.elapsed < 100
    limits.begin_training()
    assert not limits.is_training_over
    wall[0] += 100 * PATIENCE + 1
    assert limits.is_training_over and limits.elapsed > 100


SEEDED = """
import random

import numpy as np
import torch

random.seed(1), np.random.seed(2), torch.manual_seed(seed=3)
print("first loss", random.random(), "second loss", np.random.rand(), "third loss", torch.rand(()).item())
"""


def test_a_seed_moves_each_of_the_scripts_seeds_and_none_changes_nothing(here: Path) -> None:
    script = write(here, SEEDED)
    first, same, second = ([one.value for one in rehearse(script, seed=seed).numbers] for seed in (0, 1, 1))
    own = subprocess.run([sys.executable, script.name], capture_output=True, text=True, check=True).stdout.split()
    assert first == [float(own[2]), float(own[5]), float(own[8])]
    assert same == second and not set(first) & set(same) and len(set(same)) == 3


def test_progress_that_is_half_written_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text('{"updates": 3')
    assert Progress.read(tmp_path / "progress") == Progress()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a process with its parent")
def test_no_rehearsal_outlives_its_check(here: Path) -> None:
    write(
        here, "import os, time\nopen('/dev/shm/' + os.environ['MARK'], 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"
    )
    mark = Path("/dev/shm", f"trainwright-test-{os.getpid()}")
    code = "from trainwright.rehearsal.process import Rehearsal\nRehearsal('train.py', seconds=30.0).start()\ninput()\n"
    check = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, env={**os.environ, "MARK": mark.name}, cwd=here
    )
    try:
        while not (mark.exists() and mark.read_text()):
            time.sleep(0.1)
        child = int(mark.read_text())
        assert Path(f"/proc/{child}").exists()
    finally:
        check.kill()
        check.communicate()
        mark.unlink(missing_ok=True)
    until = time.monotonic() + 60
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


# The loop is code that is made while the script runs: no check finds it.
UNWALKED = '''
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.randn(600, 4)
labels = (rows[:, 0] > 0).long()
train, test = TensorDataset(rows[:400], labels[:400]), TensorDataset(rows[400:], labels[400:])
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
loss = torch.nn.CrossEntropyLoss()
exec("""
for epoch in range(4):
    for x, y in DataLoader(train, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, batch_size=50))
""")
torch.save(model.state_dict(), "FOLDER/weights.pt")
'''


def check(here: Path, text: str) -> tuple[int, dict[str, Any]]:
    write(here, text)
    words = [sys.executable, "-m", "trainwright", "check", "--json", "report.json", "train.py"]
    done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=False)
    assert (here / "report.json").exists(), done.stdout + done.stderr
    return done.returncode, json.loads((here / "report.json").read_text())


def test_a_loop_that_nobody_checks_is_judged_by_its_own_run(here: Path) -> None:
    (here / "models").mkdir()
    status, report = check(here, UNWALKED.replace("FOLDER", "models"))
    assert report["verdict"]["shown"] == "learns" and status == 0, report["findings"]
    assert report["sheet"]["updates"] == 52 and report["stages"][-1]["stage"] == "rehearsal"
    assert not list((here / "models").iterdir())


def test_what_fails_after_the_training_is_known_before_it(here: Path) -> None:
    status, report = check(here, UNWALKED.replace("FOLDER", "missing"))
    assert status == 1 and report["verdict"]["shown"] == "broken"
    assert report["failure"]["where"]["line"] == 21 and "missing" in report["failure"]["message"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("late_nan", ("run-diverged", "from update 1,3")),
        ("bad_row", ("run-diverged", "houses.csv:4005")),
        ("worst_checkpoint", ("best-not-kept", "those after update 44")),
        ("leaking_folds", ("fold-begins-trained", "of its 114 evaluation rows")),
        ("lost_class", ("untrained-class", "class 0 is the label of 39 of 397")),
    ],
)
def test_the_examples_of_the_documents_are_told_with_what_when_and_which_row(
    here: Path, name: str, says: tuple[str, str]
) -> None:
    write(here, (EXAMPLES / f"{name}.py").read_text("utf-8"))
    found = review(rehearse(here / "train.py"))
    assert not found.own_errors
    assert [says[1] in one.message for one in found.findings if one.name == says[0]] == [True]
