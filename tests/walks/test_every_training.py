"""A check goes on behind a script's first training: each of its trainings is walked."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from trainwright.core.report import Report, combined, from_dict, to_dict
from trainwright.core.verdict import Shown
from trainwright.options import Options
from trainwright.report import html, terminal
from trainwright.walk.run import check_script
from walking import loud, said, walk_all

pytestmark = pytest.mark.slow

DATA = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(480, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=20, shuffle=True)
held = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=20)


def network():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))


"""
EPOCHS = """
for epoch in range(3):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
"""
HEAD_FIRST = f"""{DATA}
model = network()
for p in model[0].parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model[2].parameters(), lr=1e-2)
{EPOCHS}
for p in model.parameters():
    p.requires_grad = True
"""
IN_A_FUNCTION = f"""{DATA}
def fit(model, rate, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for epoch in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()


"""


def walked(folder: Path, code: str, **options: int) -> list[Report]:
    script = folder / "train.py"
    script.write_text(code, encoding="utf-8")
    if options:
        return check_script(script, (), Options(budget=40, **options), strict=True)
    return walk_all(script, budget=40)


def line_of(code: str, text: str, *, last: bool = True) -> int:
    lines = code.split("\n")
    found = [number for number, line in enumerate(lines, 1) if text in line]
    return found[-1 if last else 0]


def sound(reports: list[Report]) -> None:
    assert not [name for r in reports for name in loud(r)], "\n\n".join(map(said, reports))


def test_two_phases_are_both_walked(tmp_path: Path) -> None:
    code = f"{HEAD_FIRST}optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)\n{EPOCHS}"
    reports = walked(tmp_path, code)
    sound(reports)
    assert [r.training for r in reports] == [1, 2]
    assert [r.begins.line for r in reports if r.begins] == [
        line_of(code, "in loader", last=False),
        line_of(code, "in loader"),
    ]
    assert all(len(r.stages) == 10 and r.verdict for r in reports)
    assert reports[0].verdict is not None and reports[0].verdict.shown == Shown.LEARNS
    assert "not walked" not in reports[0].message


def test_a_rate_far_too_high_in_the_second_phase_is_found_at_its_line(tmp_path: Path) -> None:
    code = f"{HEAD_FIRST}optimizer = torch.optim.SGD(model.parameters(), lr=1e3)\n{EPOCHS}"
    first, second = walked(tmp_path, code)
    assert not loud(first), said(first)
    cause = second.first_cause
    assert cause is not None and cause.name == "excessive-learning-rate", said(second)
    assert cause.where is not None and cause.where.line == line_of(code, "lr=1e3")


def test_an_optimizer_that_lacks_the_new_head_is_found(tmp_path: Path) -> None:
    code = f"{DATA}model = network()\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\n{EPOCHS}"
    code += f"model[2] = nn.Linear(32, 2)\nfor p in model[0].parameters():\n    p.requires_grad = False\n{EPOCHS}"
    first, second = walked(tmp_path, code)
    assert not loud(first), said(first)
    assert "missing-parameters" in loud(second) or second.faulty, said(second)


def test_folds_are_walked_a_few_times_and_the_rest_is_named(tmp_path: Path) -> None:
    code = f"{IN_A_FUNCTION}for fold in range(6):\n    fit(network(), 1e-2, 2)\n"
    reports = walked(tmp_path, code)
    sound(reports)
    assert [r.training for r in reports] == [1, 2, 3]
    assert "was not walked" in reports[-1].message and "same line" in reports[-1].message


def test_a_sweep_whose_loop_is_its_last_statement_is_followed(tmp_path: Path) -> None:
    inner = "\n".join(f"    {line}" for line in EPOCHS.split("\n"))
    made = "    model = network()\n    optimizer = torch.optim.Adam(model.parameters(), lr=rate)\n"
    reports = walked(tmp_path, f"{DATA}for rate in (1e-2, 3e-3):\n{made}{inner}\n")
    sound(reports)
    assert [r.training for r in reports] == [1, 2]


def test_a_finding_is_not_repeated_for_each_fold(tmp_path: Path) -> None:
    code = IN_A_FUNCTION.replace("shuffle=True", "shuffle=False").replace(
        "x = torch.randn(480, 8)", "x = torch.randn(480, 8).sort(0).values"
    )
    first, *later = walked(tmp_path, f"{code}for fold in range(3):\n    fit(network(), 1e-2, 2)\n")
    known = {(f.name, f.where) for f in first.findings}
    assert first.findings
    assert not [f for r in later for f in r.findings if (f.name, f.where) in known]


@pytest.mark.wall_clock
def test_a_long_training_is_ended_early_and_its_state_is_kept(tmp_path: Path) -> None:
    code = f"{IN_A_FUNCTION.rstrip()}\n    return model\n\n\nmodel = fit(network(), 1e-2, 10_000_000)\n"
    code += "seen = nn.functional.cross_entropy(model(x), y).item()\nassert seen < 0.5\nfit(model, 1e-3, 2)\n"
    reports = walked(tmp_path, code)
    assert [r.training for r in reports] == [1, 2], said(reports[0])
    assert "ended early" in reports[1].message


def test_a_counting_loop_is_left_by_a_jump(tmp_path: Path) -> None:
    code = f"{DATA}model = network()\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\nlosses = []\n"
    code += """
for step in range(100_000_000):
    rows = torch.randint(0, 400, (20,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert len(losses) > 10 and step > 10
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
"""
    reports = walked(tmp_path, code + EPOCHS)
    sound(reports)
    assert [r.training for r in reports] == [1, 2], said(reports[0])


def test_what_the_script_does_behind_a_training_is_kept_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "model.pt"
    code = f"{IN_A_FUNCTION}model = network()\nprint('start')\nfit(model, 1e-2, 2)\nprint('behind')\n"
    code += f"torch.save(model.state_dict(), {str(saved)!r})\nopen({str(tmp_path / 'log')!r}, 'w').write('x')\n"
    code += f"other = network()\nother.load_state_dict(torch.load({str(saved)!r}))\nfit(other, 1e-3, 2)\n"
    script = tmp_path / "train.py"
    script.write_text(code, encoding="utf-8")
    reports = check_script(script, (), Options(budget=40), strict=True)
    assert [r.training for r in reports] == [1, 2], said(reports[0])
    assert capfd.readouterr().out == "start\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.py"]


def test_an_exception_behind_a_training_is_no_finding(tmp_path: Path) -> None:
    (report,) = walked(
        tmp_path, f"{IN_A_FUNCTION}model = network()\nfit(model, 1e-2, 2)\n{{}}['best']\nfit(model, 1e-3, 2)\n"
    )
    assert not loud(report) and report.failure is None and not report.faulty
    assert "the script raised KeyError" in report.message and "was not walked" in report.message


@pytest.mark.parametrize("ending", ["import os; os._exit(0)", "input('go on?')", "import sys; sys.exit(3)"])
def test_a_script_that_ends_behind_a_training_still_gets_its_report(tmp_path: Path, ending: str) -> None:
    (report,) = walked(
        tmp_path, f"{IN_A_FUNCTION}model = network()\nfit(model, 1e-2, 2)\n{ending}\nfit(model, 1e-3, 2)\n"
    )
    assert report.training == 1 and not report.faulty, said(report)


@pytest.mark.wall_clock
def test_code_that_takes_too_long_behind_a_training_is_left(tmp_path: Path) -> None:
    code = (
        f"{IN_A_FUNCTION}model = network()\nfit(model, 1e-2, 2)\nwhile x.sum() < 1e9:\n    pass\nfit(model, 1e-3, 2)\n"
    )
    (report,) = walked(tmp_path, code)
    assert "the script did not reach it in time" in report.message


def test_an_endless_loop_that_ends_its_function_cannot_be_ended_early(tmp_path: Path) -> None:
    """There is no line behind it to jump to: it runs on with single batches, as long as the budget allows."""
    (report,) = walked(
        tmp_path, f"{IN_A_FUNCTION}model = network()\nfit(model, 1e-2, 10_000_000)\nfit(model, 1e-3, 2)\n"
    )
    assert not report.faulty and "the script did not reach it in time" in report.message


def test_with_an_error_the_script_does_not_go_on(tmp_path: Path) -> None:
    code = f"{IN_A_FUNCTION}model = network()\nfit(model, 1e4, 2)\nfit(model, 1e-3, 2)\n"
    (report,) = walked(tmp_path, code)
    assert report.faulty, said(report)
    assert "was not walked: the errors above come first" in report.message


def test_a_script_with_one_training_is_left_as_before(tmp_path: Path) -> None:
    code = f"{IN_A_FUNCTION}model = network()\nfit(model, 1e-2, 2)\nraise SystemError('not reached')\n"
    (report,) = walked(tmp_path, code)
    assert report.training is None and not report.message


def test_one_training_can_be_chosen(tmp_path: Path) -> None:
    code = f"{IN_A_FUNCTION}model = network()\nfit(model, 1e-2, 2)\nfit(model, 1e-3, 2)\n"
    (report,) = walked(tmp_path, code, training=2)
    assert report.training == 2 and len(report.stages) == 10
    (report,) = walked(tmp_path, code, training=3)
    assert report.message == "There is no training 3: 2 were reached."


TRAINER = """
from transformers import Trainer, TrainingArguments

rows = [{"inputs": a, "labels": b} for a, b in zip(x, y)]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 2)

    def forward(self, inputs, labels=None):
        logits = self.head(self.body(inputs))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def arguments(rate):
    return TrainingArguments(output_dir=FOLDER, report_to="none", use_cpu=True, num_train_epochs=3, learning_rate=rate,
                             per_device_train_batch_size=20, save_strategy="no")


model = Model()
model.body.requires_grad_(False)
trainer = Trainer(model, arguments(1e-2), train_dataset=rows[:400], eval_dataset=rows[400:])
trainer.train()
assert trainer.state.log_history[-1]["train_loss"] > 0
trainer.save_model(FOLDER)
"""


@pytest.mark.parametrize(("thawed", "found"), [("True", []), ("False", ["frozen-parameters"])])
def test_a_second_trainer_is_walked(tmp_path: Path, thawed: str, found: list[str]) -> None:
    code = f"{DATA}FOLDER = {str(tmp_path / 'out')!r}\n{TRAINER}model.requires_grad_({thawed})\n"
    code += "tuner = Trainer(model, arguments(1e-3), train_dataset=rows[:400])\ntuner.train()\n"
    first, second = walked(tmp_path, code)
    assert not loud(first), said(first)
    assert bool(loud(second)) == bool(found), said(second)
    assert second.training == 2


@pytest.mark.skipif(find_spec("lightning") is None, reason="lightning is not installed")
def test_a_second_fit_of_lightning_is_walked(tmp_path: Path) -> None:
    code = f"""{DATA}
import lightning.pytorch as pl


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.rate = network(), 1e-2

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.rate)


quiet = dict(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
module = Module()
first = pl.Trainer(max_epochs=3, **quiet)
first.fit(module, loader, held)
assert first.callback_metrics["val_loss"] > 0
module.rate = 1e3
pl.Trainer(max_epochs=3, **quiet).fit(module, loader, held)
"""
    first, second = walked(tmp_path, code)
    assert not loud(first), said(first)
    assert "excessive-learning-rate" in loud(second), said(second)


@pytest.mark.keras
def test_a_second_fit_of_keras_is_walked(tmp_path: Path) -> None:
    code = """
import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(600, 8)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int32")
base = keras.Sequential([keras.Input((8,)), layers.Dense(32, activation="relu")])
model = keras.Sequential([keras.Input((8,)), base, layers.Dense(2)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
base.trainable = False
model.compile(keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
history = model.fit(x[:500], y[:500], epochs=3, validation_data=(x[500:], y[500:]))
assert len(history.history["val_accuracy"]) == 3
base.trainable = True
model.compile(keras.optimizers.SGD(1e2), loss=loss, metrics=["accuracy"])
model.fit(x[:500], y[:500], epochs=3, validation_data=(x[500:], y[500:]))
"""
    first, second = walked(tmp_path, code)
    assert not loud(first), said(first)
    cause = second.first_cause
    assert cause is not None and cause.name == "excessive-learning-rate", said(second)
    assert cause.where is not None and cause.where.line == line_of(code, "SGD(1e2)")


def test_a_report_for_all_trainings_stands_for_the_first_with_a_fault(tmp_path: Path) -> None:
    code = f"{HEAD_FIRST}optimizer = torch.optim.SGD(model.parameters(), lr=1e3)\n{EPOCHS}"
    reports = walked(tmp_path, code)
    whole = combined(reports)
    data = to_dict(whole)
    assert data["training"] == 2 and data["first_cause"]["name"] == "excessive-learning-rate"
    assert [one["training"] for one in data["trainings"]] == [1, 2]
    assert from_dict(data).trainings[1].findings[0].name == "excessive-learning-rate"
    page = html.render(whole)
    assert "training 1" in page and "training 2" in page
    assert combined(reports[:1]) is reports[0]
    assert terminal.render(reports[1])


def test_the_loader_of_an_earlier_training_is_no_evaluation_set() -> None:
    script = Path(__file__).parents[1] / "healthy" / "loops" / "pretrain_then_finetune.py"
    reports = walk_all(script)
    sound(reports)
    assert len(reports) == 2


def test_a_training_of_jax_alone_is_left_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr("trainwright.walk.session.UNWALKED_SECONDS", 1.0)
    script = tmp_path / "train.py"
    script.write_text(
        "import time\nimport jax\nimport jax.numpy as jnp\n\n"
        "x = jnp.arange(12.0).reshape(4, 3)\n"
        "step = jax.jit(lambda w: w - 0.1 * jax.grad(lambda v: jnp.mean((x @ v) ** 2))(w))\n"
        "w, began = jnp.ones(3), time.monotonic()\n"
        "while time.monotonic() - began < 90:\n    w = step(w)\n"
        "open('weights.txt', 'w').write(str(w))\n",
        encoding="utf-8",
    )
    (report,) = walk_all(script, budget=20)
    assert "trains in code that cannot be walked" in report.message
    assert not (tmp_path / "weights.txt").exists()
