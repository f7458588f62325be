"""The verdict of whole walks: what is shown of small trainings, and the exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn({rows}, 8)
y = {labels}
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle={shuffle})
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range({epochs}):
    for a, b in loader:
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
"""
SOUND = {
    "rows": 640,
    "labels": "(x[:, 0] > 0).long()",
    "shuffle": True,
    "epochs": 5,
    "loss": "nn.functional.cross_entropy(model(a), b)",
}


def checked(folder: Path, *options: str, **parts: object) -> tuple[int, dict]:
    script, report = folder / "train.py", folder / "report.json"
    script.write_text(SCRIPT.format(**{**SOUND, **parts}), "utf-8")
    command = [sys.executable, "-m", "trainwright", "check", "--json", str(report), *options, str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, json.loads(report.read_text("utf-8"))


def test_a_training_that_learns(tmp_path) -> None:
    status, report = checked(tmp_path, "--require-learning")
    assert status == 0, report
    assert report["verdict"]["shown"] == "learns"
    assert "160 training rows that were held out" in report["verdict"]["why"]


@pytest.mark.parametrize(("options", "expected"), [((), 0), (("--require-learning",), 1)])
def test_too_few_updates_show_nothing(tmp_path, options, expected) -> None:
    status, report = checked(tmp_path, *options, rows=96, epochs=1, labels="(x.prod(1) > 0).long()")
    assert report["verdict"]["shown"] == "not shown", report
    assert status == expected, report
    assert {s["stage"]: s["status"] for s in report["stages"]}["baseline"] == "not shown"


def test_several_losses_are_judged_by_their_sum(tmp_path) -> None:
    """One of them cannot be learned: it compares the score with noise."""
    both = (
        "nn.functional.cross_entropy(model(a), b) + 0.1 * nn.functional.mse_loss(model(a)[:, 0], torch.randn(len(a)))"
    )
    report = checked(tmp_path, loss=both)[1]
    assert report["verdict"]["shown"] == "learns", report
    assert report["verdict"]["why"].endswith("; 1 of its 2 losses is not below a constant prediction's")


TRAINER = """
import torch
from torch import nn
from transformers import BertConfig, Trainer, TrainingArguments

torch.manual_seed(0)
x = torch.randn(640, 8)
rows = [{{"x": a, "labels": b}} for a, b in zip(x, (x[:, 0] > 0).long())]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = BertConfig()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x, labels=None):
        scores = self.layers(x)
        loss = None if labels is None else nn.functional.cross_entropy(scores, labels)
        return {{"loss": loss, "logits": scores}}


args = TrainingArguments("out", num_train_epochs=8, learning_rate=1e-2, report_to=[], use_cpu=True, {arguments})
Trainer(Net(), args, train_dataset=rows).train()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        "per_device_train_batch_size=16, label_smoothing_factor=0.1",
        "per_device_train_batch_size=4, gradient_accumulation_steps=8",
    ],
)
def test_a_trainer_that_learns(tmp_path, arguments) -> None:
    script, report = tmp_path / "train.py", tmp_path / "report.json"
    script.write_text(TRAINER.format(arguments=arguments), "utf-8")
    command = [sys.executable, "-m", "trainwright", "check", "--json", str(report), str(script)]
    subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert json.loads(report.read_text("utf-8"))["verdict"]["shown"] == "learns", report.read_text("utf-8")


def test_a_loss_written_by_hand_cannot_be_judged(tmp_path) -> None:
    status, report = checked(tmp_path, "--require-learning", loss="(model(a)[:, 0] - b).abs().add(1).log().mean()")
    assert report["verdict"]["shown"] == "cannot be judged", report
    assert status == 0, report


def test_a_later_batch_that_raises_is_found(tmp_path) -> None:
    """The rows of the first batches are sound; the check does not end before it reached the others."""
    wrong = "(x.prod(1) > 0).long()\nx[500, 0] = 4.5"
    loss = "nn.functional.cross_entropy(model(a), b) if a[:, 0].max() < 4.4 else model(a[:, :3]).sum()"
    status, report = checked(tmp_path, labels=wrong, loss=loss, shuffle=False, epochs=2)
    assert status == 1, report
    assert report["verdict"]["shown"] == "broken", report
    assert "mat1 and mat2" in json.dumps(report)
