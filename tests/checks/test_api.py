"""`trainwright.check` on objects: it names faults with the caller's lines, and leaves everything as it was."""

import copy
import linecache
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

import trainwright
from checks import loud, said
from material import QUIET
from trainwright import runs
from trainwright.errors import UsageError
from trainwright.seams.intercept import install


def digits(rows=600):
    x, y = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(x[:rows], dtype=torch.float32) / 16, torch.tensor(y[:rows]))


class Network(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(48, classes)

    def forward(self, x):
        return self.head(self.body(x))


class Narrow(Network):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(48, 8)  # here the head is built


def line_of(text):
    """The number of the line of this file that holds a comment."""
    lines = Path(__file__).read_text().split("\n")
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def parts(classes=10, rate=1e-3):
    torch.manual_seed(3)
    model = Network(classes)
    loader = DataLoader(digits(), batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    return {"model": model, "loader": loader, "loss": nn.CrossEntropyLoss(), "optimizer": optimizer}


def test_a_healthy_training_is_left_alone():
    held = DataLoader(digits(300), batch_size=64)
    report = trainwright.check(**parts(), evaluation_loader=held, ignore=["train-eval-overlap"])
    assert not loud(report), said(report)
    assert report.script == "tests/checks/test_api.py" or report.script.endswith("test_api.py")


def test_a_fault_is_named_at_the_line_that_built_the_layer():
    model = Narrow()
    optimizer = torch.optim.Adam(model.parameters())
    report = trainwright.check(**{**parts(), "model": model, "optimizer": optimizer})
    assert report.first_cause is not None, said(report)
    assert report.first_cause.name == "label-out-of-range"
    assert report.first_cause.where.line == line_of("here the head is built")


def test_a_rate_is_named_at_the_line_of_the_optimizer():
    given = parts()
    optimizer = torch.optim.Adam(given["model"].parameters(), lr=4.0)  # the rate is written here
    report = trainwright.check(**{**given, "optimizer": optimizer})
    assert report.first_cause.name == "excessive-learning-rate", said(report)
    assert report.first_cause.where.line == line_of("the rate is written here")


def trained(check):
    """Weights after an epoch, the state of the schedule and the next random numbers; with a check before it or not."""
    given = parts()
    np.random.seed(5)
    model, optimizer = given["model"], given["optimizer"]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=40)
    model.body[1].eval()
    if check:
        trainwright.check(**given, scheduler=schedule)
    for x, y in given["loader"]:
        optimizer.zero_grad()
        given["loss"](model(x), y).backward()
        optimizer.step()
        schedule.step()
    weights = [t.clone() for t in model.state_dict().values()]
    return (
        weights,
        schedule.state_dict()["last_epoch"],
        [m.training for m in model.modules()],
        torch.rand(2),
        np.random.rand(),
    )


def test_training_after_a_check_is_training_without_it():
    (weights, *rest), (others, *others_rest) = trained(False), trained(True)
    assert all(torch.equal(a, b) for a, b in zip(weights, others))
    assert rest[:2] == others_rest[:2] and torch.equal(rest[2], others_rest[2]) and rest[3] == others_rest[3]


class Logging(nn.CrossEntropyLoss):
    """Writes each loss to a file that was opened before."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def forward(self, answers, labels):
        loss = super().forward(answers, labels)
        self.file.write(f"{loss.item()}\n")
        return loss


def test_a_file_that_is_open_gets_nothing_of_the_check(tmp_path):
    with (tmp_path / "losses.txt").open("w", buffering=1) as file:
        file.write("before\n")
        report = trainwright.check(**{**parts(), "loss": Logging(file)})
        file.write("after\n")
    assert report.stages and (tmp_path / "losses.txt").read_text() == "before\nafter\n"


def test_an_exchanged_data_set_is_put_back():
    x, y = digits().tensors
    given = {**parts(), "loader": DataLoader(TensorDataset(x * 4000, y), batch_size=32, shuffle=True)}
    loader = given["loader"]
    before = (loader.dataset, loader.collate_fn, loader.sampler.data_source)
    report = trainwright.check(**given)
    assert all(a is b for a, b in zip(before, (loader.dataset, loader.collate_fn, loader.sampler.data_source)))
    assert report.stages


def test_the_second_check_says_what_the_first_said():
    given = parts(classes=8)
    first, second = trainwright.check(**given), trainwright.check(**given)
    assert [f.message for f in first.findings] == [f.message for f in second.findings]


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.head = nn.Linear(7, 16), nn.Linear(6, 16), nn.Linear(32, 3)

    def forward(self, left, right, labels=None):
        scores = self.head(torch.relu(torch.cat([self.left(left), self.right(right)], dim=1)))
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores} if labels is not None else scores


def wine_rows():
    x, y = load_wine(return_X_y=True)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    return [(x[i, :7], x[i, 7:], torch.tensor(y)[i]) for i in order]


def as_mapping(rows):
    left, right, labels = map(torch.stack, zip(*rows))
    return {"left": left, "right": right, "labels": labels}


@pytest.mark.parametrize(
    ("collate", "loss"),
    [
        (None, nn.CrossEntropyLoss()),  # several inputs and the targets
        (as_mapping, nn.CrossEntropyLoss()),  # a mapping with labels, and a loss for them
        (as_mapping, None),  # model(**batch) gives the loss
    ],
    ids=["tuple", "mapping", "own-loss"],
)
def test_batches_may_have_several_forms(collate, loss):
    torch.manual_seed(0)
    model = TwoInputs()
    loader = DataLoader(wine_rows(), batch_size=24, shuffle=True, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    report = trainwright.check(model=model, loader=loader, loss=loss, optimizer=optimizer)
    assert not loud(report), said(report)
    assert report.sheet is not None and report.sheet.updates, said(report)


def test_a_list_of_batches_is_a_loader():
    x, y = digits().tensors
    given = parts()
    report = trainwright.check(**{**given, "loader": list(zip(x.split(50), y.split(50)))})
    assert not loud(report), said(report)


def a_trainer(rows, classes):
    config = DistilBertConfig(vocab_size=40, dim=32, hidden_dim=64, n_layers=1, n_heads=2, num_labels=classes)
    model = DistilBertForSequenceClassification(config)  # the model of the Trainer
    args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, max_steps=6, seed=1)
    return Trainer(model=model, args=args, train_dataset=rows)


def token_rows():
    draw = np.random.default_rng(0)
    rows = []
    for i in range(200):
        ids = draw.integers(5, 40, 12)
        ids[0] = 2 + i % 3
        rows.append(
            {"input_ids": torch.tensor(ids), "attention_mask": torch.ones(12, dtype=torch.long), "labels": i % 3}
        )
    return rows


def test_a_trainer_is_checked_and_trains_afterwards_as_without():
    weights = []
    for check in (False, True):
        torch.manual_seed(0)
        trainer = a_trainer(token_rows(), 3)
        if check:
            report = trainwright.check(trainer)
            assert not loud(report), said(report)
        trainer.train()
        weights.append([p.detach().clone() for p in trainer.model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights))


def test_a_fault_of_a_trainer_has_the_line_of_its_model():
    rows = token_rows()
    config = DistilBertConfig(vocab_size=40, dim=32, hidden_dim=64, n_layers=1, n_heads=2, num_labels=2)
    model = DistilBertForSequenceClassification(config)  # two outputs for three classes
    trainer = Trainer(model=model, args=TrainingArguments(**QUIET, max_steps=4), train_dataset=rows)
    report = trainwright.check(trainer)
    assert report.first_cause.name == "label-out-of-range", said(report)
    assert report.first_cause.where.line == line_of("two outputs for three classes")


NETWORK = Network()
GIVEN = {"model": NETWORK, "loader": [1], "optimizer": torch.optim.SGD(NETWORK.parameters())}


@pytest.mark.parametrize(
    ("given", "said_of_it"),
    [
        ({}, "got nothing to train"),
        ({"training": 3}, "got int"),
        ({"training": NETWORK}, "Pass it as model="),
        ({"training": NETWORK, "optimizer": 1}, "got Network and optimizer="),
        ({"model": NETWORK}, "missing: loader=, optimizer="),
        ({**GIVEN, "model": "bert"}, "model= must be a torch.nn.Module; got str"),
        ({**GIVEN, "optimizer": torch.optim.SGD}, "got the class SGD"),
        ({**GIVEN, "loss": nn.CrossEntropyLoss}, "the class CrossEntropyLoss: call it first"),
        ({**GIVEN, "loss": "mse"}, "got str"),
        ({**GIVEN, "loader": iter([1])}, "iterated only once"),
        ({**GIVEN, "loader": 5}, "loader= must yield batches every time it is iterated; got int"),
        ({**GIVEN, "datamodule": 5}, "datamodule= must be left out"),
        ({**GIVEN, "budget": -1}, "must be a positive number of seconds"),
        ({**GIVEN, "ignore": ["no-such-rule"]}, "takes names and codes of rules"),
        ({**GIVEN, "ignore": "constant-loss"}, "Write ['constant-loss']"),
    ],
)
def test_wrong_arguments_are_told_what_must_hold(given, said_of_it):
    with pytest.raises(UsageError) as raised:
        trainwright.check(given.pop("training", None), **given) if "training" in given else trainwright.check(**given)
    assert said_of_it in str(raised.value)


def test_a_step_that_raises_is_a_finding_and_not_an_exception():
    given = parts()
    given["model"].head = nn.Linear(20, 10)
    report = trainwright.check(**given)
    assert "layer-size-mismatch" in loud(report), said(report)


def test_a_report_shows_itself():
    report = trainwright.check(**parts(classes=8))
    page = report._repr_html_()
    assert page.startswith('<div class="trainwright">') and page.endswith("</div>\n")
    assert "label-out-of-range" in page and "def __init__(self, classes=10)" in page
    assert "<script" not in page and "<html" not in page and "<body" not in page
    assert repr(report).startswith("trainwright ") and "label-out-of-range (error) at " in repr(report)


def test_importing_it_imports_no_framework():
    code = "import sys, trainwright; print([n for n in ('torch', 'transformers', 'rich') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


CELLS = [
    "import torch, trainwright\nfrom torch import nn\n",
    """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 8)

    def forward(self, x):
        return self.head(x)
""",
    "\nmodel = Net()\n",
    "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)\n",
    "report = trainwright.check(model=model, loader=loader, loss=nn.CrossEntropyLoss(), optimizer=optimizer)\n",
]


def test_lines_of_other_cells_are_found():
    scope = {"__name__": "cells", "loader": DataLoader(digits(), batch_size=32)}
    for number, cell in enumerate(CELLS):
        name = f"<ipython-input-{number}-abc>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        exec(compile(cell, name, "exec"), scope)
    report = scope["report"]
    assert report.first_cause.name == "label-out-of-range", said(report)
    assert str(report.first_cause.where) == "<ipython-input-1-abc>:4"
    assert "nn.Linear(64, 8)" in report._repr_html_()


def test_a_notebook_shows_the_report(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    paths = f"import sys; sys.path += [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[2])!r}]\n"
    loader = f"{paths}from test_api import digits\nfrom torch.utils.data import DataLoader\nloader = DataLoader(digits(), batch_size=32)"
    cells = [CELLS[0], loader, *CELLS[1:], "report", "print(report)"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    resources = {"metadata": {"path": str(Path(__file__).parents[1] / "helpers")}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    shown = notebook.cells[-2].outputs[-1].data
    assert 'class="trainwright"' in shown["text/html"] and "label-out-of-range" in shown["text/plain"]
    assert "In [3]:4" in notebook.cells[-1].outputs[-1].text


def test_where_a_process_may_not_fork_it_trains_itself_and_puts_everything_back(monkeypatch):
    given = parts(rate=4.0)
    before = copy.deepcopy((given["model"].state_dict(), given["optimizer"].state_dict()))
    held = [dict(vars(owner)) for owner in (torch.nn.functional, torch.Tensor)]
    random = torch.get_rng_state()
    reports = [trainwright.check(**given)]
    monkeypatch.setattr(runs, "may_fork", lambda: False)
    install()
    reports += [trainwright.check(**given), trainwright.check(**given)]
    assert [[f.name for f in report.findings] for report in reports] == [["excessive-learning-rate"]] * 3
    assert runs.NOT_FORKED in reports[1].message and not reports[0].message
    assert torch.equal(random, torch.get_rng_state())
    after = given["model"].state_dict(), given["optimizer"].state_dict()
    assert all(torch.equal(a, b) for a, b in zip(before[0].values(), after[0].values())) and before[1] == after[1]
    for owner, kept in zip((torch.nn.functional, torch.Tensor), held):
        assert {n for n, v in vars(owner).items() if kept.get(n) is not v} == set()


_TWICE = """
import sys, warnings
import jax, sklearn.base, sklearn.metrics, torch
from test_api import parts
import trainwright
from trainwright import runs
from trainwright.seams.intercept import install

OWNERS = [jax, jax.lax, sklearn.metrics, sklearn.base.BaseEstimator, torch, torch.nn.functional, torch.nn.utils, torch.jit,
          torch.Tensor, torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler,
          torch.optim.lr_scheduler.SequentialLR]

def list_changed():
    return [f"{one.__name__}.{name}" for one, before in zip(OWNERS, kept) for name, value in vars(one).items()
            if callable(value) and before.get(name) is not value]

given, runs.may_fork = parts(rate=4.0), lambda: False
install()
kept = [dict(vars(one)) for one in OWNERS]
for _ in range(2):
    report = trainwright.check(**given)
    print([finding.name for finding in report.findings], list_changed())
"""


def test_a_check_in_this_process_leaves_the_functions_of_each_framework_as_they_were():
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers")]
    script = f"import sys; sys.path[:0] = {paths!r}\n{_TWICE}"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert told.stdout == "['excessive-learning-rate'] []\n" * 2, told.stderr
