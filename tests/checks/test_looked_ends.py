"""An exception that ends the run is judged in the run itself: its cause is named, and nothing else is."""

from pathlib import Path

import pytest

from tests.checks.test_looked import server
from trainwright.core import Report, Severity
from trainwright.judging.looks import judge_looks
from trainwright.judging.report import judge_run
from trainwright.options import Options
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.rehearsal.record import Record

__all__ = ["server"]

HEAD = """
import sys

import torch
from torch import nn
from engines import Engine

torch.manual_seed(0)
X = torch.randn(100, 8)
y = (X[:, 0] + X[:, 1] > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=16, shuffle=True)


def train(model, loss, loader=loader, epochs=3, **more):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(engine, batch):
        x, y = batch
        optimizer.zero_grad()
        loss(model(x), y).backward(**more)
        optimizer.step()

    Engine(step).run(loader, epochs)


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


entropy = nn.CrossEntropyLoss()
"""
# The name of the finding, the script's end, and what is faulty in it and is right; "# here" marks the line of the finding.
ENDS = {
    "a loss in an engine's first step": (
        "misnumbered-labels",
        """
labels = y{}
pairs = torch.utils.data.TensorDataset(X, labels)
train(network(), entropy, torch.utils.data.DataLoader(pairs, batch_size=16))
""",
        (" + 1", ""),
    ),
    "the last batch, which is smaller": (
        "fixed-batch-size",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(x.view({}, 2, 4).flatten(1))  # here


train(Net(), entropy)
""",
        ("16", "-1"),
    ),
    "a state that is carried from step to step": (
        "repeated-backward",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.step, self.pace = nn.Linear(8, 2), nn.Parameter(torch.ones(1)), torch.ones(1)

    def forward(self, x):
        self.pace = (self.pace{} + self.step) / 2  # here
        return self.pace * self.head(x)


train(Net(), entropy)
""",
        ("", ".detach()"),
    ),
    "a batch of a second training": (
        "ragged-batch",
        """
train(network(), entropy)
texts = [torch.randn({}, 8) for n in range(40)]
pooled = nn.Sequential(nn.Linear(8, 2))
train(pooled, lambda answer, _: answer.square().mean(), [(text, None) for text in torch.utils.data.DataLoader(texts, batch_size=4)])  # here
""",
        ("4 + n % 3", "4"),
    ),
    "an evaluation behind the training": (
        "layer-size-mismatch",
        """
model = network()
train(model, entropy)
held_out = torch.randn(20, {})
with torch.no_grad():
    print(model.eval()(held_out).argmax(1))
""",
        ("7", "8"),
    ),
    "an optimizer without parameters": (
        "unregistered-parameters",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = {}([nn.Linear(8, 16), nn.Linear(16, 2)])  # here

    def forward(self, x):
        return self.layers[1](self.layers[0](x).relu())


train(Net(), entropy)
""",
        ("list", "nn.ModuleList"),
    ),
    "an argument that a class does not take": (
        "renamed-argument",
        """
train(network(), entropy, torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), {}=16))  # here
""",
        ("batchsize", "batch_size"),
    ),
    "a name that a library does not have": (
        "removed-api",
        """
from torch.optim.lr_scheduler import {}  # here

train(network(), entropy)
""",
        ("CosineAnealingLR", "CosineAnnealingLR"),
    ),
    "a method whose name is misspelled": (
        "misspelled-method",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def {}(self, x):  # here
        return self.head(x)


train(Net(), entropy)
""",
        ("forwad", "forward"),
    ),
    "a call that was caught, and an exit that answers it": (
        "layer-size-mismatch",
        """
try:
    train(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear({}, 2)), entropy)  # here
except RuntimeError as error:
    sys.exit(str(error))
""",
        ("12", "16"),
    ),
}


def run(text: str, folder: Path, server: Server) -> Record:
    (folder / "train.py").write_text(text, encoding="utf-8")
    with Rehearsal("train.py", seconds=30, folder=folder, server=server) as rehearsal:
        record = rehearsal.wait()
    assert not record.watcher_errors, record.watcher_errors
    return record


@pytest.mark.parametrize("how", ENDS)
def test_the_cause_of_an_exception_is_named_alone(how: str, tmp_path: Path, server: Server) -> None:
    name, script, (wrong, _) = ENDS[how]
    text = HEAD + script.replace("{}", wrong)
    record = run(text, tmp_path, server)
    assert record.ended.failure is not None
    (found,), failed = judge_looks(record.looks)
    assert not failed
    assert found.name == name
    assert found.proof is not None or found.repair is not None
    lines = [i for i, line in enumerate(text.split("\n"), 1) if line.endswith("# here")]
    assert found.where is not None
    if lines:
        assert found.where.line == lines[0]
    shown = judge_run(Report(script="train.py"), record, Options())
    assert [f.name for f in shown.findings if f.severity == Severity.ERROR] == [name]
    assert shown.failure is None


@pytest.mark.parametrize("how", ENDS)
def test_the_sound_twin_ends_in_silence(how: str, tmp_path: Path, server: Server) -> None:
    _, script, (_, right) = ENDS[how]
    record = run(HEAD + script.replace("{}", right), tmp_path, server)
    assert record.ended.failure is None
    assert not any(look.is_end for look in record.looks)
    assert judge_looks(record.looks) == ([], [])


CAUGHT = """
try:
    network()(torch.randn(4, 7))
except RuntimeError:
    print("as expected")
try:
    train(nn.Sequential(nn.Linear(8, 16), nn.Linear(12, 2)), entropy)
except RuntimeError:
    print("as expected")
"""


def test_an_exception_that_the_script_catches_gets_no_word(tmp_path: Path, server: Server) -> None:
    record = run(HEAD + CAUGHT + "train(network(), entropy)\n", tmp_path, server)
    assert record.ended.failure is None
    assert judge_looks(record.looks) == ([], [])


@pytest.mark.parametrize(
    "end",
    [
        'raise ValueError("the loss is too high")\n',
        "{}['loss']\n",
        "assert sys.argv[1:], 'which data?'\n",
        'open("nowhere.csv")\n',
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        if x.max() > 2.5:
            raise ValueError("a value is too large")
        return self.head(x)


train(Net(), entropy)
""",
    ],
)
def test_an_exception_that_no_rule_explains_stays_what_it_is(end: str, tmp_path: Path, server: Server) -> None:
    record = run(HEAD + CAUGHT + end, tmp_path, server)
    assert record.ended.failure is not None
    assert judge_looks(record.looks) == ([], [])
    shown = judge_run(Report(script="train.py"), record, Options())
    assert shown.failure == record.ended.failure
