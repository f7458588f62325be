"""Trainings that cannot be checked are looked at as they run: the same rules speak of them, and nothing is disturbed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exam.programs import ENVIRONMENT
from trainwright.core import Report, Severity, Shown
from trainwright.judging.looks import judge_looks
from trainwright.judging.report import judge_run
from trainwright.options import Options
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.rehearsal.record import Record
from trainwright.stages import ForwardFacts, GradientFacts, OptimizerFacts

# A package, as others install them, whose loops are its own.
PACKAGE = """
import torch


class Engine:
    def __init__(self, step):
        self.step = step

    def run(self, loader, epochs):
        for _ in range(epochs):
            for batch in loader:
                self.step(self, batch)


class Fitter:
    def __init__(self, model, optimizer, loss):
        self.model, self.optimizer, self.loss = model, optimizer, loss

    def fit(self, loader, epochs):
        self.model.train()
        for _ in range(epochs):
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()


class Estimator:
    def __init__(self, module, loss, optimizer):
        self.module, self.loss, self.optimizer = module, loss, optimizer

    def fit(self, loader, epochs):
        model = self.module()
        optimizer = self.optimizer(model.parameters(), lr=0.01)
        for _ in range(epochs):
            for x, y in loader:
                def closure():
                    optimizer.zero_grad()
                    loss = self.loss(model(x), y)
                    loss.backward()
                    return loss

                optimizer.step(closure)
"""
HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(256, 8)
y = (X[:, 0] + X[:, 1] > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        return {answer}  # here


"""
SOUND, FAULTY = "self.layers(x)", "torch.softmax(self.layers(x), -1)"
BODIES = {
    "an engine that calls the script's step": """
from engines import Engine

model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def train_step(engine, batch):
    x, y = batch
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()


Engine(train_step).run(loader, 4)
""",
    "a package's own loop": """
from engines import Fitter

model = Classifier()
Fitter(model, torch.optim.Adam(model.parameters(), lr=0.01), nn.CrossEntropyLoss()).fit(loader, 4)
""",
    "an estimator that builds all, and steps with a closure": """
from engines import Estimator

Estimator(Classifier, nn.CrossEntropyLoss(), torch.optim.Adam).fit(loader, 4)
""",
    "a second training": """
autoencoder = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8))
first = torch.optim.Adam(autoencoder.parameters(), lr=0.01)
for x, _ in loader:
    first.zero_grad()
    nn.functional.mse_loss(autoencoder(x), x).backward()
    first.step()
model = Classifier()
second = torch.optim.Adam(model.parameters(), lr=0.01)
for x, y in loader:
    second.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    second.step()
""",
    "Ignite": """
from ignite.engine import create_supervised_trainer

model = Classifier()
create_supervised_trainer(model, torch.optim.Adam(model.parameters(), lr=0.01), nn.CrossEntropyLoss()).run(loader, max_epochs=4)
""",
    "skorch": """
from skorch import NeuralNetClassifier

net = NeuralNetClassifier(Classifier, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=0.01, max_epochs=4, verbose=0)
net.fit(X.numpy(), y.numpy())
""",
}
# Prints its weights' sum after updates with everything that a look might disturb.
DISTURBABLE = """
import torch
from torch import nn

torch.manual_seed(0)
X, y = torch.randn(96, 6), torch.randint(2, (96,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 36)
for epoch in range(3):
    for number, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / 2
        loss.backward()
        if number % 2:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
print("loss:", loss.item())
print("weights:", sum(p.double().sum().item() for p in model.state_dict().values()))
print("draw:", torch.rand(1).item())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("installed") / "site-packages"
    folder.mkdir()
    (folder / "engines.py").write_text(PACKAGE, encoding="utf-8")
    helpers = str(Path(__file__).parents[1] / "helpers")
    paths = os.pathsep.join(filter(None, (str(folder), helpers, os.environ.get("PYTHONPATH"))))
    with Server(["torch"], {**ENVIRONMENT, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}) as server:
        yield server


def run(text: str, folder: Path, server: Server) -> Record:
    (folder / "train.py").write_text(text, encoding="utf-8")
    with Rehearsal("train.py", seconds=30, folder=folder, server=server) as rehearsal:
        record = rehearsal.wait()
    assert record.ended.failure is None, record.ended
    assert not record.watcher_errors, record.watcher_errors
    return record


@pytest.mark.parametrize("how", BODIES)
def test_a_fault_is_named_where_no_step_can_be_lifted(how: str, tmp_path: Path, server: Server) -> None:
    text = HEAD.replace("{answer}", FAULTY) + BODIES[how]
    record = run(text, tmp_path, server)
    found, failed = judge_looks(record.looks)
    assert not failed
    loud = [one for one in found if one.severity != Severity.NOTE]
    assert [one.name for one in loud] == ["double-activation"]
    assert loud[0].where is not None
    assert text.split("\n")[loud[0].where.line - 1].endswith("# here")
    report = Report(script="train.py")
    shown = judge_run(report, record, Options())
    assert not shown.message
    assert shown.framework == "torch"
    assert [one.name for one in shown.findings if one.severity == Severity.ERROR] == ["double-activation"]
    assert shown.verdict is not None
    assert shown.verdict.shown == Shown.BROKEN


@pytest.mark.parametrize("how", BODIES)
def test_a_sound_training_is_looked_at_in_silence(how: str, tmp_path: Path, server: Server) -> None:
    record = run(HEAD.replace("{answer}", SOUND) + BODIES[how], tmp_path, server)
    assert len(record.looks) == (2 if how == "a second training" else 1)
    assert judge_looks(record.looks) == ([], [])


@pytest.mark.parametrize(
    "script",
    [
        "tests/healthy/loops/gradient_penalty.py",
        "tests/healthy/loops/gan_two_optimizers.py",
        "exam/idioms/peft_own_loop.py",
        "exam/idioms/validation_floats_csv.py",
        "exam/idioms/fgsm_adversarial.py",
    ],
)
def test_optimizers_that_take_turns_and_evaluations_with_gradients_are_looked_at_in_silence(
    script: str, server: Server
) -> None:
    path = Path(__file__).parents[2] / script
    with Rehearsal(path.name, seconds=5, folder=path.parent, server=server) as rehearsal:
        record = rehearsal.wait()
    assert record.looks
    assert not record.watcher_errors, record.watcher_errors
    assert judge_looks(record.looks) == ([], [])


def test_nothing_is_said_of_a_step_before_which_weights_are_moved_by_hand(server: Server) -> None:
    path = Path(__file__).parents[2] / "exam/idioms/sam.py"
    with Rehearsal(path.name, seconds=3, folder=path.parent, server=server) as rehearsal:
        record = rehearsal.wait()
    assert record.updates
    assert not record.watcher_errors, record.watcher_errors
    assert judge_looks(record.looks) == ([], [])


def test_losses_weights_and_draws_are_those_of_plain_python(tmp_path: Path, server: Server) -> None:
    record = run(DISTURBABLE, tmp_path, server)
    alone = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    seen = {number.name: number.value for number in record.numbers}
    assert record.looks
    assert seen == {line.split(":")[0]: float(line.split(":")[1]) for line in alone.splitlines()}


def test_a_step_that_raises_is_the_scripts_failure_and_is_measured(tmp_path: Path, server: Server) -> None:
    text = HEAD.replace("{answer}", SOUND).replace("nn.Linear(16, 2)", "nn.Linear(12, 2)")
    (tmp_path / "train.py").write_text(text + BODIES["a package's own loop"], encoding="utf-8")
    with Rehearsal("train.py", seconds=30, folder=tmp_path, server=server) as rehearsal:
        record = rehearsal.wait()
    assert record.ended.failure is not None
    assert "mat1 and mat2" in record.ended.failure.message
    assert [one.name for one in judge_looks(record.looks)[0]] == ["layer-size-mismatch"]


def test_a_mode_of_the_scripts_around_its_step_is_left_as_it_is(tmp_path: Path, server: Server) -> None:
    text = HEAD.replace("{answer}", FAULTY) + BODIES["a second training"].split("model = Classifier()")[0]
    inside = text.replace(
        "    first.step()",
        "    first.step()\n    print('mode:', len(torch.overrides._get_current_function_mode_stack()))",
    )
    inside = inside.replace("for x, _ in loader:", "for x, _ in loader:\n  with torch.device('cpu'):").replace(
        "\n    first", "\n      first"
    )
    inside = inside.replace("\n    nn.functional", "\n      nn.functional").replace("\n    print", "\n      print")
    record = run(inside, tmp_path, server)
    assert not record.looks
    assert {number.value for number in record.numbers if number.name == "mode"} == {1.0}


SCHEDULED = """
import torch
from torch import nn
from torch.optim.lr_scheduler import (
    ChainedScheduler, ConstantLR, CosineAnnealingWarmRestarts, ExponentialLR, LRScheduler, ReduceLROnPlateau,
    SequentialLR,
)

class Halving(LRScheduler):
    def get_lr(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch=None):
        self.last_epoch += 1
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] / 2**self.last_epoch

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
parts = lambda: [ConstantLR(optimizer, 0.5, 4), ExponentialLR(optimizer, 0.9)]
schedule = {schedule}
x = torch.randn(32, 4)
y = (x[:, 0] > 0).long()
for _ in range(6):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    schedule.step({given})
"""


@pytest.mark.parametrize(
    ("schedule", "given"),
    [
        ("ExponentialLR(optimizer, 0.9)", ""),
        ("ReduceLROnPlateau(optimizer)", "loss.item()"),
        ("CosineAnnealingWarmRestarts(optimizer, 4)", ""),
        ("ChainedScheduler(parts())", ""),
        ("SequentialLR(optimizer, parts(), milestones=[4])", ""),
        ("Halving(optimizer)", ""),
    ],
)
def test_each_step_of_a_schedule_is_counted_once_whichever_class_makes_it(
    schedule: str, given: str, tmp_path: Path, server: Server
) -> None:
    record = run(SCHEDULED.replace("{schedule}", schedule).replace("{given}", given), tmp_path, server)
    [optimizer] = [one.facts[OptimizerFacts] for one in record.looks]
    assert isinstance(optimizer, OptimizerFacts)
    assert optimizer.schedule_steps == 6


# A discriminator that sees four moments of a whole batch: two losses before each of its steps, in three forms.
TWO_LOSSES = """
import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(1, 5), nn.Tanh(), nn.Linear(5, 1))
judge = nn.Sequential(nn.Linear(4, 10), nn.Sigmoid(), nn.Linear(10, 1), nn.Sigmoid())
optimizer = torch.optim.SGD(judge.parameters(), lr=0.01)


def moments(rows):
    far = (rows - rows.mean()) / rows.std()
    return torch.stack([rows.mean(), rows.std(), (far**3).mean(), (far**4).mean()])


def go_backward(rows, labels):
    nn.functional.binary_cross_entropy(judge(rows), labels).backward()


for step in range(8):
    optimizer.zero_grad()
    {losses}
    optimizer.step()
"""
TWO_WAYS = {
    "two lines": """nn.functional.binary_cross_entropy(judge(moments(torch.randn(50))), torch.ones(1)).backward()
    made = generator(torch.rand(50, 1)).detach()
    nn.functional.binary_cross_entropy(judge(moments(made)), torch.zeros(1)).backward()""",
    "a function": """go_backward(moments(torch.randn(50)), torch.ones(1))
    go_backward(moments(generator(torch.rand(50, 1)).detach()), torch.zeros(1))""",
    "a loop": """for draw, label in ((torch.randn, 1.0), (torch.rand, 0.0)):
        rows = torch.stack([moments(draw(50)), moments(draw(50))])
        go_backward(rows, torch.full((2, 1), label))""",
}


@pytest.mark.parametrize("how", TWO_WAYS)
def test_two_losses_of_one_step_are_no_micro_batches(how: str, tmp_path: Path, server: Server) -> None:
    record = run(TWO_LOSSES.replace("{losses}", TWO_WAYS[how]), tmp_path, server)
    [look] = record.looks
    gradients, forward = look.facts[GradientFacts], look.facts[ForwardFacts]
    assert isinstance(gradients, GradientFacts) and gradients.accumulated_share is None
    assert isinstance(forward, ForwardFacts) and forward.output is not None and forward.output.shape[-1] == 1
    assert forward.output.shape[0] < 50
