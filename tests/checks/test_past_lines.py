"""One check names all the lines that stop a script and train nothing, and judges what lies behind them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

STOPPED = """
import torch
from huggingface_hub import Repository, get_full_repo_name

torch.manual_seed(0)
inputs = torch.randn(600, 4)
labels = (inputs.sum(dim=1) > 0).long()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
repository = Repository("out", clone_from=get_full_repo_name("mine"))


def evaluate():
    model.eval()
    losses = []
    for rows in torch.arange(500, 600).split(20):
        with torch.no_grad():
            losses.append(torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows]))
    model.train()
    return torch.cat(losses).mean().item()


evaluate()
for step in range(400):
    rows = torch.randint(500, (32,))
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print("rows so far", step * rows_per_step)
        print("loss", evaluate())
        repository.push_to_hub()
"""


def check(folder: Path, text: str, *options: str) -> dict:
    (folder / "train.py").write_text(text)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "trainwright", "check", "--json", "report.json", *options, "train.py"]
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    assert (folder / "train.py").read_text() == text and not (folder / "out").exists()
    return json.loads((folder / "report.json").read_text())


def test_each_line_is_named_and_a_copy_without_them_is_judged(tmp_path: Path) -> None:
    report = check(tmp_path, STOPPED)
    found = {(f["name"], f["where"]["line"]) for f in report["findings"]}
    assert found == {("removed-api", 3), ("script-stopped", 20), ("script-stopped", 31)}
    assert report["verdict"]["shown"] == "broken"
    assert "learns" in report["message"] and "line 3: Repository is a stand-in" in report["message"]
    ended = report["stages"][-1]
    assert ended["status"] == "repaired" and "400 updates; the script to its end" in ended["why"]
    assert [s["why"] for s in report["stages"] if s["status"] == "failed"] == ["removed-api"]


def test_what_stops_a_run_behind_a_repair_is_passed_too(tmp_path: Path) -> None:
    """The course's second script: a repair, a line in front of the training, one in its log."""
    text = STOPPED.replace("> 0).long()", "> 0).long() + (inputs.sum(dim=1) > 3).long()")
    text = text.replace("labels[rows]))\n    model.train()", "labels[rows].clamp(max=1)))\n    model.train()")
    report = check(tmp_path, text)
    found = [(f["name"], f["where"]["line"], f["after_repair"]) for f in report["findings"] if f["severity"] != "note"]
    assert sorted(found) == [
        ("label-out-of-range", 8, []),
        ("removed-api", 3, []),
        ("script-stopped", 20, []),
        ("script-stopped", 31, ["label-out-of-range"]),
    ]
    assert "With label-out-of-range fixed in memory, a copy (line 3: Repository is a stand-in" in report["message"]
    assert "is judged by itself: learns" in report["message"] and report["verdict"]["shown"] == "broken"


def test_what_is_trained_has_no_stand_in(tmp_path: Path) -> None:
    text = STOPPED.replace(
        "from huggingface_hub import Repository, get_full",
        "from transformers import AdamW\nfrom huggingface_hub import get_full",
    )
    report = check(tmp_path, text)
    assert [f["name"] for f in report["findings"]] == ["removed-api"]
    assert report["stages"][0]["status"] == "failed"


def test_no_repair_goes_past_nothing(tmp_path: Path) -> None:
    report = check(tmp_path, STOPPED, "--no-repair")
    assert [f["name"] for f in report["findings"]] == ["removed-api"]
