"""The watchers of torch: what they write into the record, and that a watched run is the run."""

import math

import numpy as np
import pytest
import torch

from trainwright.rehearsal.record import LabelKind, Output, PairSource, Pass, Record
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.watch import stored_rows
from trainwright.rehearsal.watch.numbers import numbers_in
from trainwright.rehearsal.watch.torch.state import MOST_HELD, HeldTensor, storage_of
from trainwright.rehearsal.watch.torch.watch import TorchWatch
from trainwright.stages import ForwardFacts
from watched import watched

LOOP = """
import copy, hashlib, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(240, 6); y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
train, test = TensorDataset(x[:200], y[:200]), TensorDataset(x[200:], y[200:])
loader = DataLoader(train, batch_size=20, shuffle=True)
held_out = DataLoader(test, batch_size=10)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
lost, best, best_loss = [], None, 1e9
for epoch in range(4):
    model.train()
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        lost.append(loss.item())
    model.eval()
    total, right = 0.0, 0
    with torch.no_grad():
        for a, b in held_out:
            out = model(a)
            total += nn.functional.cross_entropy(out, b).item()
            right += (out.argmax(1) == b).sum().item()
    print(f"epoch {epoch}: val loss {total / 4:.4f} +- 0.5, accuracy {right / 40:.1%}")
    if epoch == 1:
        best = copy.deepcopy(model.state_dict())
model.load_state_dict(best)
print(hashlib.sha256(repr(lost).encode()).hexdigest())
"""

WIDE = """
import torch
from torch import nn

torch.manual_seed(0)
pictures = torch.zeros(40, 1, 20, 20)
pictures[:, :, 4:16, :] = (torch.rand(40, 1, 12, 20) > 0.5).float()
model = nn.Sequential(nn.Flatten(), nn.Linear(400, 8), nn.ReLU(), nn.Linear(8, 400), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy(model(pictures), pictures.view(-1, 400), reduction="sum").backward()
    optimizer.step()
"""

OWN_LOSS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 1)

    def forward(self, body, blood, wanted=None):
        guess = self.out(torch.cat([body, blood], 1)).squeeze(1)
        return guess if wanted is None else nn.functional.mse_loss(guess, wanted)

torch.manual_seed(0)
body, blood, wanted = torch.randn(40, 2), torch.randn(40, 4), torch.randn(40)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    model(body=body.clone(), blood=blood.clone(), wanted=wanted.clone()).backward()
    optimizer.step()
"""

SCRIPTED = """
import torch
from torch import nn

def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@torch.jit.script
class Doubling:
    def __init__(self, factor: float):
        self.factor = factor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return double(x) * self.factor

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
nn.functional.mse_loss(Doubling(2.0)(model(torch.ones(4, 2))), torch.zeros(4, 1)).backward()
optimizer.step()
"""

CASES = """
import torch
from torch import nn
from torch.func import grad, vmap

# A comparison at the end of a pass, two heads of the same shape, and a second head that no optimizer holds.
torch.manual_seed(0)
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.apart = nn.Linear(8, 1)
    def forward(self, x):
        h = self.body(x).relu()
        return self.first(h), self.second(h), self.apart(h)
x = torch.randn(64, 4)
labels = (x[:, 0] > 0).long(), (x[:, 1] > 0).long()
two = Two()
optimizer = torch.optim.SGD([*two.body.parameters(), *two.first.parameters(), *two.second.parameters()], lr=0.1)
for step in range(12):
    a, b, c = two(x)
    loss = nn.functional.cross_entropy(a, labels[0]) + nn.functional.cross_entropy(b, labels[1]) + c.mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
guesses = []
with torch.no_grad():
    for part in x.split(16):
        guesses.append(two(part)[1].argmax(1))
right = (torch.cat(guesses) == labels[1]).float().mean()

# Evaluated without no_grad: nobody calls backward on it.
evaluated = nn.functional.cross_entropy(two(x)[0], 1 - labels[0])
a, b, c = two(x)
loss = nn.functional.cross_entropy(a, labels[0]); optimizer.zero_grad(); loss.backward(); optimizer.step()

# Mixed rows: one output, two targets.
out = two(x)[0]
loss = 0.5 * nn.functional.cross_entropy(out, labels[0]) + 0.5 * nn.functional.cross_entropy(out, labels[0].flip(0))
optimizer.zero_grad(); loss.backward(); optimizer.step()

# An optimizer that holds nothing of the model that is called; its loss is not finite in the end.
lone, other = nn.Linear(4, 1), nn.Linear(4, 1)
wrong = torch.optim.SGD(other.parameters(), lr=0.1)
for step in range(12):
    wrong.zero_grad()
    loss = ((lone(x).squeeze(1) - x[:, 0]) ** 2).mean() * (float("nan") if step == 11 else 1.0)
    loss.backward(); wrong.step()

# Transforms: nothing is looked at, nothing is disturbed.
weight = {k: v.detach() for k, v in lone.named_parameters()}
each = vmap(grad(lambda w, r: nn.functional.mse_loss(torch.func.functional_call(lone, w, (r,)), r[:1])), in_dims=(None, 0))(weight, x)
assert each["weight"].shape == (64, 1, 4)

# LBFGS with a closure; a skipped step of a scaler is no update; TorchScript compiles a loss.
fitted = nn.Linear(4, 1)
closed = torch.optim.LBFGS(fitted.parameters(), max_iter=3)
def closure():
    closed.zero_grad()
    loss = nn.functional.mse_loss(fitted(x), x[:, :1]); loss.backward()
    return loss
closed.step(closure)
@torch.jit.script
def scripted(a, b):
    return torch.nn.functional.mse_loss(a, b)
scripted(x, x)
# Two optimizers in turn are one training.
g, d = nn.Linear(4, 4), nn.Linear(4, 1)
og, od = torch.optim.SGD(g.parameters(), lr=0.1), torch.optim.SGD(d.parameters(), lr=0.1)
for step in range(4):
    od.zero_grad(); nn.functional.binary_cross_entropy_with_logits(d(g(x).detach()), torch.ones(64, 1)).backward(); od.step()
    og.zero_grad(); nn.functional.binary_cross_entropy_with_logits(d(g(x)), torch.ones(64, 1)).backward(); og.step()
# Two losses, each with a backward of its own.
m, n = nn.Linear(4, 5), nn.Linear(4, 6)
om, on = torch.optim.SGD(m.parameters(), lr=0.1), torch.optim.SGD(n.parameters(), lr=0.1)
for step in range(3):
    first, second = nn.functional.cross_entropy(m(x), labels[0]), nn.functional.cross_entropy(n(x), labels[0])
    om.zero_grad(); first.backward(); om.step()
    on.zero_grad(); second.backward(); on.step()
from sklearn.metrics import accuracy_score
accuracy_score([0, 1, 1], [0, 1, 0])
# A baseline's own score.
from sklearn.linear_model import LogisticRegression
accuracy_score(labels[0][:7].tolist(), LogisticRegression().fit(x[:7], labels[0][:7]).predict(x[:7]))
"""

TRAINER = """
import sys, torch
from torch import nn
from transformers import Trainer, TrainingArguments

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
    def forward(self, x, labels=None):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
torch.manual_seed(0)
x = torch.randn(120, 6)
rows = [{"x": r, "labels": int(r[0] > 0)} for r in x]
arguments = TrainingArguments("out", num_train_epochs=3, per_device_train_batch_size=10, eval_strategy="epoch", save_strategy="epoch",
    logging_steps=1, report_to=[], load_best_model_at_end=True, use_cpu=True, disable_tqdm=True, learning_rate=0.01)
trainer = Trainer(Model(), arguments, train_dataset=rows[:80], eval_dataset=rows[80:])
trainer.train()
print([log["loss"] for log in trainer.state.log_history if "loss" in log], [float(p.double().sum()) for p in trainer.model.parameters()])
"""
SMOOTHED = """
import torch
from transformers.trainer import LabelSmoother

torch.manual_seed(0)
model, smoother = torch.nn.Linear(3, 2), LabelSmoother(0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(40, 3); y = (x[:, 0] > 0).long()
y[:4] = -100
for step in range(5):
    optimizer.zero_grad()
    smoother({"logits": model(x)}, y).backward()
    optimizer.step()
with torch.no_grad():
    smoother({"logits": model(x + 1)}, y)
print(model.weight.tolist())
"""
BY_HAND = """
import torch
model = torch.nn.Linear(3, 2)
x = torch.randn(40, 3); y = (x[:, 0] > 0).long()
for step in range(5):
    for half in (slice(0, 20), slice(20, 40)):
        torch.nn.functional.cross_entropy(model(x[half]), y[half]).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
        right = (model(x).argmax(1) == y).float().mean()
"""
LABELLED = """
import torch
from torch import nn

class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        return (self.model(x)[:, 0] - labels).abs().mean() + nn.functional.mse_loss(self.model(x)[:, 0], labels * 1.0)

torch.manual_seed(0)
rows = [{"x": torch.randn(2), "label": torch.randn(())} for _ in range(40)]
held_out = torch.randn(30, 2)
model = nn.Linear(2, 1)
loss = Loss(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for batch in torch.utils.data.DataLoader(rows, 20):
        optimizer.zero_grad()
        loss(batch["x"], batch["label"]).backward()
        optimizer.step()
    with torch.no_grad():
        nn.functional.mse_loss(model(held_out)[:, 0], held_out[:, 1])
"""
SCORED = """
import pickle
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import f1_score, get_scorer, make_scorer

class Rule(BaseEstimator):
    def predict(self, x):
        return (x[:, 0] > 0) * 1

get_scorer("accuracy")(Rule(), np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, 0, 1]))
pickle.dumps([get_scorer("f1_macro"), make_scorer(f1_score)])
"""
TWO = Output(LabelKind.CLASSES, 2)


@pytest.fixture(scope="module")
def loop() -> tuple[Record, str]:
    return watched(LOOP)


@pytest.fixture(scope="module")
def cases() -> Record:
    return watched(CASES)[0]


@pytest.fixture(scope="module")
def trainer() -> tuple[Record, str]:
    return watched(TRAINER)


def test_a_watched_loop_is_the_loop(loop: tuple[Record, str]) -> None:
    assert loop[1] == watched(LOOP, on=False)[1]
    assert not loop[0].watcher_errors


def test_a_watched_trainer_is_the_trainer(trainer: tuple[Record, str]) -> None:
    last = trainer[1].splitlines()[-1]
    assert last.startswith("[[") or last.startswith("[")
    assert last == watched(TRAINER, on=False)[1].splitlines()[-1]
    assert not trainer[0].watcher_errors


def test_the_trainers_loss_with_smoothed_labels_is_seen() -> None:
    record, printed = watched(SMOOTHED)
    assert printed == watched(SMOOTHED, on=False)[1] and not record.watcher_errors
    counts = record.trained_labels[TWO].classes
    assert sum(counts.values()) == 5 * 36
    trained = [one for one in record.answers if one.trains]
    assert [len(one.labels) for one in trained] == [36] * 5 and all(one.guesses is not None for one in trained)
    assert [len(one.labels) for one in record.answers if not one.trains] == [36]


def test_updates_losses_and_rates(loop: tuple[Record, str]) -> None:
    record = loop[0]
    assert record.updates == 40 and [update for update, _ in record.losses] == list(range(40))
    assert [step.number for step in record.looked_updates] == list(range(1, 41))
    assert all(step.rate == 0.01 and step.gradient_norm and step.gradient_norm > 0 for step in record.looked_updates)
    (training,) = record.trainings
    assert (training.kind, training.begins, training.ends) == ("loop", 0, 40)
    assert training.weights_before != training.weights_after
    assert training.where is not None and training.where.file.endswith("snippet.py")


def test_rows_that_loaders_draw(loop: tuple[Record, str]) -> None:
    record = loop[0]
    train, test = record.drawn
    assert (train.size, train.name, train.trains) == (200, "TensorDataset", True)
    assert train.draws == dict.fromkeys(range(200), 4)
    assert (test.size, test.trains, test.draws) == (40, False, dict.fromkeys(range(40), 4))
    trained = [one for one in record.answers if one.trains]
    assert len(trained) == 40
    numbers = np.concatenate([one.numbers for one in trained[:10]])
    assert sorted(numbers.tolist()) == list(range(200))
    assert len(record.trained_keys) == 200 and set(record.trained_keys.values()) == {4}
    assert sum(record.trained_labels[Output(LabelKind.CLASSES, 3)].classes.values()) == 800
    inputs, labels, _ = record.trained_rows[Output(LabelKind.CLASSES, 3)]
    assert inputs.shape == (200, 6)
    assert np.array_equal(labels, (inputs[:, 0] > 0).astype(int) + (inputs[:, 1] > 0.5))


def test_passes_have_a_begin_a_set_and_weights(loop: tuple[Record, str]) -> None:
    record = loop[0]
    assert [(one.update, one.calls, one.is_trained) for one in record.passes] == [
        (n, 4, True) for n in (10, 20, 30, 40)
    ]
    assert {one.data for one in record.passes} == {record.drawn[1].data}
    assert len({one.weights for one in record.passes}) == 4
    assert not any(one.noisy_calls for one in record.passes)
    evaluated = [one for one in record.answers if not one.trains]
    assert [one.evaluation for one in evaluated] == [n for n in (1, 2, 3, 4) for _ in range(4)]
    assert {one.source for one in evaluated} == {PairSource.LOSS}  # the comparison shows the same once more
    assert np.concatenate([one.numbers for one in evaluated[:4]]).tolist() == list(range(40))
    assert not {*evaluated[0].keys.tolist()} & {*record.trained_keys}


def test_a_copied_state_and_where_it_was_put(loop: tuple[Record, str]) -> None:
    record = loop[0]
    (kept,) = record.kept
    (loaded,) = record.loaded
    assert (kept.how, kept.update, kept.tensors) == ("copied", 20, 4)
    assert kept.weights == record.passes[1].weights == loaded.after
    assert loaded.before == record.passes[3].weights
    assert (loaded.missing, loaded.tensors, loaded.model) == (0, 4, record.passes[0].model)


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("Test accuracy with 150 trees: 0.97", [("test accuracy", 0.97)]),
        ("Epoch 1 | loss 0.3 | acc 0.9", [("loss", 0.3), ("acc", 0.9)]),
        ("Epoch 3 of 10, loss 0.3 and acc 0.9", [("loss", 0.3), ("acc", 0.9)]),
        ("2 | criterion | BarlowTwinsLoss | 0", []),
        ("00:12 min ┃ 1.8503 ┃ 37.81 %", []),
        ("loss at step 10: 0.4", [("loss", 0.4)]),
        ("Accuracy of the network on the 10000 test images: 54 %", [("test accuracy", 0.54)]),
        (
            "Test set: Average loss: 0.2, Accuracy: 9800/10000 (98%)",
            [("test average loss", 0.2), ("test accuracy", 0.98)],
        ),
        ("F1 on the test set 0.8", [("f1 test", 0.8)]),
        ("D (0.7 real_err, 0.6 fake_err) G (0.9 err)", [("real err", 0.7), ("fake err", 0.6), ("err", 0.9)]),
        ("0.31 loss, 0.8 acc", [("loss", 0.31), ("acc", 0.8)]),
        ("loss: 0.5 acc: 0.9", [("loss", 0.5), ("acc", 0.9)]),
        ("HR: 0.5\tNDCG: 0.3", [("hr", 0.5), ("ndcg", 0.3)]),
        ("triplet loss 0.02  5-NN accuracy 0.94", [("triplet loss", 0.02), ("5 nn accuracy", 0.94)]),
        ("top-5 accuracy 91%", [("top 5 accuracy", 0.91)]),
        ("loss-0.43 acc-0.9", [("loss", 0.43), ("acc", 0.9)]),
    ],
)
def test_a_printed_number_has_the_name_that_its_sentence_gives_it(line: str, numbers: list[tuple[str, float]]) -> None:
    assert numbers_in(line) == numbers


def test_numbers_that_are_printed(loop: tuple[Record, str]) -> None:
    record, out = loop
    printed = [(one.update, one.name, one.value) for one in record.numbers if one.update == 40]
    line = out.splitlines()[3]
    loss, accuracy = float(line.split("val loss ")[1].split()[0]), float(line.split("accuracy ")[1].rstrip("%")) / 100
    assert printed[:2] == [(40, "val loss", loss), (40, "val accuracy", pytest.approx(accuracy))]
    assert 0.5 not in [value for _, _, value in printed]  # a spread


def test_parameters(loop: tuple[Record, str]) -> None:
    record = loop[0]
    assert [(p.name, p.is_held, p.had_gradient, p.has_moved, p.steps) for p in record.parameters] == [
        (name, True, True, True, 40) for name in ("0.weight", "0.bias", "3.weight", "3.bias")
    ]
    assert not record.lasting_noise and not [one for one in record.looks if one.facts[ForwardFacts].has_last_weights]


def test_several_outputs_of_the_same_shape(cases: Record) -> None:
    assert not cases.watcher_errors
    assert TWO in cases.trained_labels and Output(LabelKind.CLASSES, 2, 1) in cases.trained_labels
    by_comparison = [one for one in cases.answers if one.source == PairSource.COMPARISON]
    assert [len(one.labels) for one in by_comparison] == [16] * 4
    assert {one.output.number for one in by_comparison} == {1}
    assert {one.evaluation for one in by_comparison} == {1}


def test_an_evaluation_with_gradients(cases: Record) -> None:
    """Nobody calls backward on it."""
    answers = [one for one in cases.answers if one.output == TWO and not one.trains and one.source == PairSource.LOSS]
    assert len(answers) == 1 and answers[0].update == 12
    assert (answers[0].guesses == answers[0].labels).mean() < 0.5


def test_mixed_rows(cases: Record) -> None:
    assert cases.several_targets == 1


def test_a_loss_waits_for_its_own_backward(cases: Record) -> None:
    for width in (5, 6):
        assert [one.trains for one in cases.answers if one.output == Output(LabelKind.CLASSES, width)] == [True] * 3


def test_updates_by_hand() -> None:
    record, _ = watched(BY_HAND)
    assert record.updates == 5 and [update for update, _ in record.losses] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [(one.update, one.calls) for one in record.passes] == [(n, 1) for n in (1, 2, 3, 4, 5)]
    assert [(one.begins, one.ends) for one in record.trainings] == [(0, 5)]
    assert [(one.name, one.is_held, one.has_moved) for one in record.parameters] == [
        ("weight", True, True),
        ("bias", True, True),
    ]
    assert not record.watcher_errors


def test_a_scripted_class_finds_the_names_of_its_module() -> None:
    record, _ = watched(SCRIPTED)
    assert record.updates == 1


def test_wide_rows_are_read_all_over() -> None:
    """The first numbers of a picture are its border."""
    record, _ = watched(WIDE)
    (output,) = record.trained_labels
    assert output == Output(LabelKind.BINARY, 64)
    shares = np.asarray(record.trained_labels[output].total) / record.trained_labels[output].count
    assert shares[0] == 0 and 0.3 < shares[16:48].mean() < 0.7
    assert all(one.labels.shape[1] == 64 and one.labels[:, 16:48].any() for one in record.answers)


def test_labels_that_a_model_is_given_for_its_own_loss_are_no_features_of_its_rows() -> None:
    record, _ = watched(OWN_LOSS)
    (rows,) = record.trained_rows.values()
    assert rows[0].shape == (40, 6)


def test_a_loss_that_holds_the_model_is_no_other_model() -> None:
    record, _ = watched(LABELLED)
    (rows,) = record.trained_rows.values()
    assert rows[0].shape == (40, 2)
    assert record.passes and len({*(one.model for one in record.answers), *(made.model for made in record.passes)}) == 1


def test_scorers_of_sklearn_are_heard_and_can_be_sent_to_other_processes() -> None:
    record, _ = watched(SCORED)
    assert [(one.name, one.value) for one in record.numbers if one.source == "returned"] == [("accuracy_score", 0.75)]


@pytest.mark.parametrize("name", ["Tensor", "DataFrame", "Series"])
def test_a_class_of_the_script_that_has_a_tables_name_is_no_table(name: str) -> None:
    value = type(name, (), {"__module__": "__main__"})()
    assert not stored_rows._is_table(value) and stored_rows._array_of(value) is None


def test_what_no_optimizer_holds(cases: Record) -> None:
    by_shape = {(p.name, p.shape): p for p in cases.parameters}
    apart = by_shape["apart.weight", (1, 8)]
    assert not apart.is_held and not apart.has_moved and apart.had_gradient
    lone = [p for p in cases.parameters if p.shape == (1, 4) and not p.is_held]
    assert [(p.name, p.had_gradient, p.has_moved) for p in lone] == [("weight", True, False)]
    other = [p for p in cases.parameters if p.shape == (1, 4) and p.is_held and not p.has_moved]
    assert [(p.steps, p.had_gradient) for p in other] == [(12, False)]


def test_a_loss_that_is_not_finite_and_differences(cases: Record) -> None:
    (found,) = [update for update, loss in cases.losses if math.isnan(loss)]
    assert found == 14 + 11
    differences = [one for one in cases.answers if one.source == PairSource.DIFFERENCE]
    assert len(differences) == 12 and all(
        one.trains and one.output == Output(LabelKind.NUMBERS, 1) for one in differences
    )


def test_trainings_of_several_optimizers(cases: Record) -> None:
    """Two optimizers in turn have one between them."""
    spans = [(one.begins, one.ends) for one in cases.trainings]
    assert spans == [(0, 14), (14, 26), (26, 27), (27, 35), (35, 41)]


def test_returned_numbers(cases: Record) -> None:
    (returned,) = [one for one in cases.numbers if one.source == "returned"]
    assert (returned.name, returned.value) == ("accuracy_score", pytest.approx(2 / 3))


def test_the_trainers_training(trainer: tuple[Record, str]) -> None:
    record = trainer[0]
    (training,) = record.trainings
    assert (training.kind, training.begins, training.ends, training.planned) == ("Trainer", 0, 24, 24)
    assert not training.is_cut
    (best,) = record.best
    assert best.higher_is_better is False and len(best.values) == 3 and best.name == "loss"
    assert best.kept == int(np.argmin(best.values))
    assert {one.name for one in record.numbers if one.source == "logged"} >= {"loss", "eval_loss"}
    evaluated = [one for one in record.answers if not one.trains]
    assert {one.evaluation for one in evaluated} == {1, 2, 3} and sum(len(one.labels) for one in evaluated) == 120
    assert all(one.numbers is not None for one in evaluated)


ODD_ROW = """
import csv, torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

with open("rows.csv", "w") as file:
    file.write("a,b,y\\n")
    for i in range(120):
        file.write(f"{i / 120},{'nan' if i == 97 else i % 7},{i % 5}\\n")
with open("rows.csv") as file:
    table = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
data = TensorDataset(torch.tensor([[row["a"], row["b"]] for row in table]), torch.tensor([row["y"] for row in table]))
torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for x, y in DataLoader(Subset(data, list(range(20, 120))), batch_size=4):
    loss = nn.functional.mse_loss(model(x)[:, 0], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_the_row_that_made_the_loss_infinite_is_found_in_its_file() -> None:
    record, _ = watched(ODD_ROW)
    broken = record.broken
    assert broken is not None and broken.rows == (77,) and (broken.column, broken.position) == ("[0]", 1)
    assert broken.data == "Subset" and broken.size == 100
    assert broken.origin == 'row 97 of table, column "b" (nan)'
    assert broken.where is not None and broken.where.file.endswith("rows.csv") and broken.where.line == 99


_AHEAD = '''
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
CLASSES = 20_000  # so wide that an output's memory is used again
x, y = torch.randn(1024, 4), torch.randint(0, CLASSES, (1024,))
train = DataLoader(TensorDataset(x[:512], y[:512]), batch_size=64)
held = DataLoader(TensorDataset(x[512:], y[512:]), batch_size=64)


def ahead(loader):
    """Draw a batch before the one in front of it is used, as Accelerate's loaders do."""
    rows = iter(loader)
    last = next(rows)
    for batch in rows:
        yield last
        last = batch
    yield last


model = nn.Linear(4, CLASSES)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(4):
    for step, (a, b) in enumerate(ahead(train)):
        nn.functional.cross_entropy(model(a * 2), b).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 2:
            model.eval()
            with torch.no_grad():
                for c, d in held:
                    nn.functional.cross_entropy(model(c * 2), d)
            model.train()
'''


def test_batches_drawn_before_an_evaluation_are_still_trained_on_after_it() -> None:
    record, _ = watched(_AHEAD)
    assert {(one.data, one.trains) for one in record.drawn} == {
        (record.drawn[0].data, True),
        (record.drawn[1].data, False),
    }
    assert {one.data for one in record.answers if one.trains} == {record.drawn[0].data}
    assert {one.data for one in record.answers if not one.trains} == {record.drawn[1].data}


def test_what_another_watcher_knows_of_its_models_remains() -> None:
    recorder = Recorder()
    recorder.record.passes.append(Pass(number=1, update=4, model=99, is_trained=True, weights=1.0))
    TorchWatch(recorder).finish()
    assert recorder.record.passes[0].is_trained


def test_memory_that_is_used_again_is_not_taken_for_what_it_held() -> None:
    memory = np.zeros(MOST_HELD + 1, np.float32)
    large = torch.from_numpy(memory)  # too large to be held: the answers of a language model soon fill the memory
    held = HeldTensor.of(large)
    assert held.storage == storage_of(large) == storage_of(large[5:].view(-1, 4))
    del large
    assert held.storage != storage_of(torch.from_numpy(memory))
