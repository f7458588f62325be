"""An accelerator's own error is looked for again on the CPU, and the end of its memory is explained."""

import pytest

from checks import check_script
from records import empty
from trainwright.core import Failure
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Ended
from trainwright.runs import Runs

ON_DEVICE = "CUDA error: device-side assert triggered"


class Rehearsed:
    """Runs that end with these messages, one after the other."""

    def __init__(self, *messages: str) -> None:
        self.messages, self.devices = [*messages], []

    def start(self) -> None:
        self.start_again(device="auto")

    def start_again(self, copies=None, repairs=(), device="", seconds=None) -> None:
        self.devices.append(device)

    def wait(self, say, *, until) -> Record:
        message = self.messages.pop(0)
        failure = Failure(type="RuntimeError", message=message, where=None) if message else None
        return empty(ended=Ended(failure=failure))


@pytest.mark.parametrize(
    ("messages", "told", "devices"),
    [
        ((ON_DEVICE, "Target 9 is out of bounds."), "Target 9 is out of bounds.", ["auto", "cpu"]),
        ((ON_DEVICE, ""), ON_DEVICE, ["auto", "cpu"]),
        (("no such table",), "no such table", ["auto"]),
    ],
)
def test_an_error_that_hides_its_cause_is_looked_for_again_on_the_cpu(messages, told, devices):
    rehearsed = Rehearsed(*messages)
    failure = Runs(rehearsed, 5.0, print).run(repairs=False).ended.failure
    assert failure is not None and (failure.message, rehearsed.devices) == (told, devices)


SCRIPT = """
import torch
from material import QUIET
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x, labels):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


rows = [{"x": torch.randn(8), "labels": i % 2} for i in range(64)]
Trainer(Net(), TrainingArguments(**QUIET, per_device_train_batch_size=16), train_dataset=rows).train()
"""


@pytest.mark.slow
def test_memory_that_holds_no_row_is_explained_without_a_repair(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    first = check_script(script).first_cause
    assert first is not None and first.name == "out-of-memory"
    assert "not even one row fits" in first.message and first.repair is None
