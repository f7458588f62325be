"""A framework that is too old for a check is named before the check: what is needed, what was found, what to do."""

import subprocess
import sys
import types
from pathlib import Path

import pytest

import trainwright
from trainwright.errors import UnsupportedVersion
from trainwright.seams import requirements

pytestmark = pytest.mark.slow

_TORCH_LOOP = """
import torch
from torch import nn

x, y = torch.randn(64, 4), torch.randn(64, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.__version__ = "2.1.0"
try:
    for epoch in range(3):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
except Exception:
    pass
print("trained")
"""
_KERAS_2 = '__version__ = "2.15.0"\nclass Model:\n    def fit(self, x):\n        print("trained")\n'


def check(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainwright", "check", str(script), *words], capture_output=True, text=True, timeout=200
    )  # fmt: skip


def test_an_old_torch_is_named_when_a_loop_begins(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_TORCH_LOOP)
    ended = check(script)
    assert ended.returncode == 2 and "trained" not in ended.stdout
    assert "a check needs torch 2.2 or later, and this environment has torch 2.1.0" in ended.stderr
    assert 'pip install "torch>=2.2"' in ended.stderr and "Traceback" not in ended.stderr


def test_keras_2_is_refused_at_its_fit_instead_of_training_the_whole_script(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text(_KERAS_2)
    script = tmp_path / "train.py"
    script.write_text("import keras\nkeras.Model().fit([1])\n")
    ended = check(script)
    assert ended.returncode == 2 and "trained" not in ended.stdout
    assert "Keras 3.7 or later, and this environment has Keras 2.15.0" in ended.stderr
    assert "tf-keras" in ended.stderr and "Traceback" not in ended.stderr


def test_an_old_package_that_is_imported_and_not_trained_with_is_nobodys_matter(tmp_path: Path) -> None:
    """torch's writer for TensorBoard imports whatever TensorFlow and Keras lie there."""
    (tmp_path / "keras.py").write_text(_KERAS_2)
    script = tmp_path / "train.py"
    script.write_text("import keras\n" + _TORCH_LOOP.replace('torch.__version__ = "2.1.0"\n', ""))
    ended = check(script)
    assert "a check needs" not in ended.stderr and "nothing found" in " ".join(ended.stdout.split())


def test_objects_of_an_old_framework_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(4, 2), torch.randn(4, 1))]
    monkeypatch.setattr(torch, "__version__", "1.13.1")
    with pytest.raises(UnsupportedVersion, match=r"has torch 1\.13\.1; the script is not at fault"):
        trainwright.check(model=model, loader=batches, loss=torch.nn.MSELoss(), optimizer=optimizer)


@pytest.mark.parametrize(
    ("found", "old"),
    [("2.1.2", True), ("2.2", False), ("2.2.0+cpu", False), ("2.10.0", False), ("2.3.0a0+git1", False), ("", False)],
)
def test_versions_are_compared_by_their_numbers(found: str, old: bool) -> None:
    assert requirements.is_too_old(found, "torch") is old


def test_what_is_not_imported_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", types.ModuleType("transformers"))
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "4.30.0", raising=False)
    monkeypatch.delitem(sys.modules, "accelerate", raising=False)
    told = requirements.shortfall(["transformers", "accelerate"])
    assert "transformers 4.41 or later" in told and "accelerate" not in told
