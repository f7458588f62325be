"""A check sees each training of a script."""

from pathlib import Path

import pytest

from checks import check_script, loud, said
from trainwright.core import Report

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


def run_whole(folder: Path, code: str) -> Report:
    """The report of a script."""
    (folder / "train.py").write_text(code, encoding="utf-8")
    return check_script(folder / "train.py")


def line_of(code: str, text: str, *, last: bool = True) -> int:
    lines = code.split("\n")
    found = [number for number, line in enumerate(lines, 1) if text in line]
    return found[-1 if last else 0]


def test_a_rate_far_too_high_in_the_second_phase_is_found_at_its_line(tmp_path: Path) -> None:
    code = f"{HEAD_FIRST}optimizer = torch.optim.SGD(model.parameters(), lr=1e3)\n{EPOCHS}"
    report = run_whole(tmp_path, code)
    cause = report.first_cause
    assert cause is not None and cause.name == "excessive-learning-rate", said(report)
    assert cause.where is not None and cause.where.line == line_of(code, "lr=1e3")


def test_an_optimizer_that_lacks_the_new_head_is_found(tmp_path: Path) -> None:
    code = f"{DATA}model = network()\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\n{EPOCHS}"
    code += f"model[2] = nn.Linear(32, 2)\nfor p in model[0].parameters():\n    p.requires_grad = False\n{EPOCHS}"
    report = run_whole(tmp_path, code)
    assert report.faulty and report.first_cause is not None, said(report)
    assert {"unregistered-parameters", "weights-stand-still"} & set(loud(report)), said(report)


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


@pytest.mark.parametrize(("thawed", "is_loud"), [("True", False), ("False", True)])
def test_a_second_trainer_is_looked_at(tmp_path: Path, thawed: str, is_loud: bool) -> None:
    code = f"{DATA}FOLDER = {str(tmp_path / 'out')!r}\n{TRAINER}model.requires_grad_({thawed})\n"
    code += "tuner = Trainer(model, arguments(1e-3), train_dataset=rows[:400])\ntuner.train()\n"
    report = run_whole(tmp_path, code)
    assert bool(loud(report)) == is_loud, said(report)


KERAS = """
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


@pytest.mark.keras
def test_a_second_fit_of_keras_is_looked_at(tmp_path: Path) -> None:
    report = run_whole(tmp_path, KERAS)
    cause = report.first_cause
    assert cause is not None and cause.name == "excessive-learning-rate", said(report)
    assert cause.where is not None and cause.where.line == line_of(KERAS, "SGD(1e2)")


def test_a_training_of_jax_alone_is_left_after_a_while(tmp_path: Path) -> None:
    pytest.importorskip("jax")
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
    report = check_script(script)
    assert report.failure is None and not report.internal_errors, said(report)
    assert not (tmp_path / "weights.txt").exists()
