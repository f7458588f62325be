"""The verdict of whole checks: what is shown of small trainings, and the exit status."""

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
x = torch.randn({rows} + 160, 8)
y = {labels}
loader = DataLoader(TensorDataset(x[:{rows}], y[:{rows}]), batch_size=16, shuffle={shuffle})
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range({epochs}):
    for a, b in loader:
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        {evaluates}
"""
SOUND = {
    "rows": 640,
    "labels": "(x[:, 0] > 0).long()",
    "shuffle": True,
    "epochs": 5,
    "loss": "nn.functional.cross_entropy(model(a), b)",
    "evaluates": "print((model(x[-160:]).argmax(1) == y[-160:]).float().mean().item())",
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
    assert "after 200 updates 160 evaluation rows are right at 0.9" in report["verdict"]["why"]


@pytest.mark.parametrize(("options", "expected"), [((), 0), (("--require-learning",), 1)])
def test_too_few_updates_show_nothing(tmp_path, options, expected) -> None:
    status, report = checked(tmp_path, *options, rows=96, epochs=1, labels="(x.prod(1) > 0).long()")
    assert report["verdict"]["shown"] == "not shown", report
    assert status == expected, report
    assert {s["stage"]: s["status"] for s in report["stages"]}["rehearsal"] == "not shown"


@pytest.mark.parametrize(("options", "expected"), [((), 0), (("--require-learning",), 1)])
def test_rows_that_were_trained_on_show_no_learning(tmp_path, options, expected) -> None:
    status, report = checked(tmp_path, *options, evaluates="pass")
    assert report["verdict"]["shown"] == "not shown", report
    assert "training rows are right at 0.9" in report["verdict"]["why"]
    assert report["verdict"]["why"].endswith("no held-out labels were seen beside answers")
    assert status == expected, report


def test_a_loss_that_cannot_be_learned_is_pointed_at_beside_one_that_is(tmp_path) -> None:
    """It compares the score with noise."""
    both = (
        "nn.functional.cross_entropy(model(a), b) + 0.1 * nn.functional.mse_loss(model(a)[:, 0], torch.randn(len(a)))"
    )
    report = checked(tmp_path, loss=both)[1]
    assert report["verdict"]["shown"] == "learns", report
    assert "160 evaluation rows are right at 0.9" in report["verdict"]["why"]
    (told,) = report["verdict"]["look_at"]
    assert told.endswith("training rows of 1 number are answered like a constant")


TRAINER = """
import torch
from torch import nn
from transformers import BertConfig, Trainer, TrainingArguments

torch.manual_seed(0)
x = torch.randn(640, 8)
rows = [{{"x": a, "labels": b}} for a, b in zip(x, (x[:, 0] > 0).long())]
held_out = rows[480:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = BertConfig()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x, labels=None):
        scores = self.layers(x)
        loss = None if labels is None else nn.functional.cross_entropy(scores, labels)
        return {{"loss": loss, "logits": scores}}


args = TrainingArguments("out", num_train_epochs=8, learning_rate=1e-2, report_to=[], use_cpu=True,
                         eval_strategy="epoch", {arguments})
Trainer(Net(), args, train_dataset=rows[:480], eval_dataset=held_out).train()
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


def test_a_loss_without_labels_cannot_be_judged(tmp_path) -> None:
    loss = "(model(a) + model(-a)).square().mean()"
    status, report = checked(tmp_path, "--require-learning", loss=loss, evaluates="pass")
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
