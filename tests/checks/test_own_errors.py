"""An exception of Trainwright's own is never said to be the script's: it ends in exit status 2."""

import types
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import trainwright
from checks import check_script, said
from trainwright.core import Shown, Status
from trainwright.seams.failures.blame import failure_of, is_own, of_pipeline, passed_on

pytestmark = pytest.mark.slow

BUG = "return {}['planted']"
MISSING = "import a_framework_that_is_not_installed"


def plant(monkeypatch, where, does=BUG):
    """Let a function or method of ours go wrong, with a frame in the file that it belongs to."""
    module_name, _, path = where.partition(":")
    owner = module = import_module(module_name)
    *owners, name = path.split(".")
    for one in owners:
        owner = getattr(owner, one)
    code = compile(f"def planted(*args, **kwargs):\n    {does}\n", module.__file__, "exec")
    function = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    monkeypatch.setattr(owner, name, types.FunctionType(function, vars(module)))


def model_and_rows():
    """A compiled model of Keras, and arguments of its `fit`; labels of 4 classes for 3 scores."""
    import keras

    keras.utils.set_random_seed(0)
    x = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, {"x": x, "y": x[:, :3].argmax(1), "epochs": 2, "verbose": 0}


@pytest.mark.keras
@pytest.mark.parametrize(
    "where",
    ["adapters.keras.training:FitTraining.__init__", "adapters.keras.first_update:measure_dataset",
     "adapters.keras.first_update:train", "seams.keras.observer:Observer._note"],
)  # fmt: skip
@pytest.mark.parametrize("does", [BUG, MISSING])
def test_a_look_at_a_keras_model_that_fails_is_told(where, does, monkeypatch) -> None:
    model, given = model_and_rows()
    plant(monkeypatch, f"trainwright.{where}", does)
    report = trainwright.check(model, **given)
    assert any("planted" in error or "not_installed" in error for error in report.internal_errors), said(report)
    assert report.failure is None and not report.findings, said(report)


def test_an_error_in_a_process_of_a_loaders_is_told_by_its_message() -> None:
    place = f'  File "{trainwright.__file__}", line 3, in collate\n    rows[0]'
    text = f"Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n{place}\n"
    assert is_own(_raised(ValueError(text)))
    theirs = text.replace(trainwright.__file__, "/home/me/train.py")
    assert not is_own(_raised(ValueError(theirs)))


def _raised(error):
    try:
        raise error
    except Exception as raised:
        return raised


def _ours(source, **names):
    """What a line of ours raises."""
    code = compile(source, import_module("trainwright.adapters.data.reading").__file__, "exec")
    try:
        exec(code, {"passed_on": passed_on, "np": np, "torch": torch, "of_pipeline": of_pipeline, **names})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_arithmetic_that_refuses_our_own_line_is_ours() -> None:
    assert is_own(_ours("len(label)", label=torch.tensor(1)))
    assert is_own(_ours("np.stack([a, b])", a=np.zeros(2), b=np.zeros(3)))
    assert is_own(_ours("[1][3]"))


def test_what_we_hand_on_is_the_users() -> None:
    assert not is_own(_ours("passed_on(rows.__getitem__, 3)", rows=[1]))
    assert not is_own(_ours("(lambda f, *a: f(*a))(len, 3)"))
    assert not is_own(_ours("raise of_pipeline(KeyError('loss'))"))


def test_what_the_users_own_objects_raise_below_our_line_is_theirs() -> None:
    class Rows:
        def __len__(self):
            return [][0]

    assert not is_own(_ours("len(rows)", rows=Rows()))
    assert not is_own(_ours("next(iter(loader))", loader=DataLoader([torch.zeros(2), torch.zeros(3)], 2)))


def test_what_a_device_tells_late_is_not_ours() -> None:
    error = _ours("raise RuntimeError('CUDA error: device-side assert triggered')")
    assert not is_own(error)
    assert not is_own(_ours("raise torch.OutOfMemoryError('CUDA out of memory')"))


def test_an_error_of_ours_cannot_be_made_a_failure_of_the_users() -> None:
    with pytest.raises(KeyError):
        failure_of(_ours("{}['planted']"))


# From Python


def parts():
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    model = nn.Linear(6, 3)
    loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return {"model": model, "loader": loader, "loss": nn.CrossEntropyLoss(), "optimizer": optimizer}


@pytest.mark.parametrize("where", ["adapters.torch.given_parts:begin_training", "rehearsal.run:move_seeds"])
@pytest.mark.parametrize("does", [BUG, MISSING])
def test_a_check_from_python_tells_our_errors_apart(where, does, monkeypatch) -> None:
    plant(monkeypatch, f"trainwright.{where}", does)
    report = trainwright.check(**parts())
    assert report.internal_errors and report.failure is None and not report.findings, said(report)
    assert report.verdict is None or report.verdict.shown != Shown.BROKEN, said(report)
    assert not any(s.status == Status.FAILED for s in report.stages), said(report)


def test_a_look_that_fails_is_told(monkeypatch) -> None:
    plant(monkeypatch, "trainwright.look.look:measure_first_step")
    report = trainwright.check(**parts())
    assert any("planted" in error for error in report.internal_errors), said(report)


# A row without an axis

LOOP = """import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(60, 8)
y = {labels}
model = nn.Linear(8, {outputs})
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    for row, label in zip(X, y):
        optimizer.zero_grad()
        loss = nn.functional.{loss}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("labels", "outputs", "loss"),
    [
        ("X[:, :3].argmax(1)", 3, "cross_entropy(model(row), label)"),
        ("X[:, :3].argmax(1)", 3, "nll_loss(model(row).log_softmax(0), label)"),
        ("X[:, 0] * 2 + 1", 1, "mse_loss(model(row).squeeze(), label)"),
        ("(X[:, 0] > 0).float()", 1, "binary_cross_entropy_with_logits(model(row)[0], label)"),
    ],
)
def test_a_loop_over_single_rows_is_checked_to_its_end(labels, outputs, loss, tmp_path) -> None:
    """`len(label)` of a label without an axis was an error of ours that the script was blamed for."""
    script = tmp_path / "train.py"
    script.write_text(LOOP.format(labels=labels, outputs=outputs, loss=loss))
    report = check_script(script)
    assert {s.stage.label: s.status.through for s in report.stages}["optimizer"], said(report)
    assert not report.findings and not report.internal_errors, said(report)


def test_a_model_that_is_its_own_head_is_widened_and_put_back() -> None:
    """Its repair registered a module without a name in it, and changed nothing."""
    given = parts()
    model = given["model"] = nn.Linear(6, 2)
    given["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1)
    weight, before = model.weight, model.weight.detach().clone()
    report = trainwright.check(**given)
    (finding,) = (f for f in report.findings if f.name == "label-out-of-range")
    assert finding.proof is not None and "a further run goes on to its end" in finding.proof.fact, said(report)
    assert model.weight is weight and torch.equal(weight, before)
    assert model.out_features == 2 and not list(model.children())
    assert given["optimizer"].param_groups[0]["params"] == list(model.parameters())
