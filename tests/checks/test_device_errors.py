"""An accelerator's own error is replayed on the CPU, and the end of its memory is explained."""

import json
import subprocess
import sys

import pytest

from checks import check_script, said

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
rows = [{"x": x, "labels": y} for x, y in zip((images / 16).astype("float32"), digits)][:300]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, OUTPUTS)

    def forward(self, x, labels):
        if self is ON_DEVICE:
            raise RuntimeError("CUDA error: device-side assert triggered")
        scores = self.head(self.body(x))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


ON_DEVICE = model = Net()
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=rows).train()
"""


def test_a_device_side_assert_is_replayed_on_the_cpu_and_its_cause_named(tmp_path):
    """The device says nothing of the cause; on the CPU label 9 with 5 outputs is an index out of bounds."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("OUTPUTS", "5"))
    report = check_script(script)
    assert report.first_cause is not None, said(report)
    assert report.first_cause.name == "label-out-of-range", said(report)
    assert not report.internal_errors
    assert all(s.status in ("passed", "repaired", "skipped") for s in report.stages), said(report)


def test_a_device_error_that_does_not_come_back_on_the_cpu_is_reported_as_it_is(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("OUTPUTS", "10"))
    report = check_script(script)
    assert report.first_cause is None, said(report)
    assert report.faulty, said(report)
    assert report.failure is not None
    assert "device-side assert" in report.failure.message
    assert not report.internal_errors, said(report)


def test_memory_that_holds_no_row_is_explained_without_a_repair(tmp_path):
    script = tmp_path / "train.py"
    raised = 'raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")'
    failing = 'if self is ON_DEVICE:\n            raise RuntimeError("CUDA error: device-side assert triggered")'
    script.write_text(SCRIPT.replace("OUTPUTS", "10").replace(failing, raised))
    report = check_script(script)
    first = report.first_cause
    assert first is not None, said(report)
    assert first.name == "out-of-memory", said(report)
    assert "not even one row fits" in first.message
    assert first.repair is None


LOST = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(images / 16).float(), torch.tensor(digits)), batch_size=64)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 9))
optimizer = torch.optim.Adam(model.parameters())


def lose(*given):
    def refuse(*given):
        raise RuntimeError("CUDA error: device-side assert triggered")

    torch.set_rng_state = refuse
    refuse()


if "--device" not in sys.orig_argv:
    model[0].register_forward_hook(lose)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_where_the_device_is_lost_with_the_cause_the_check_begins_anew_on_the_cpu(tmp_path):
    """After an assertion nothing on the device can be read or put back."""
    (tmp_path / "train.py").write_text(LOST)
    command = [sys.executable, "-m", "trainwright", "check", "--json", "report.json", "train.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    assert "begins anew on the CPU" in ran.stderr and "internal error" not in ran.stderr
    found = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert [one["name"] for one in found] == ["label-out-of-range"]
