"""Loops with Accelerate: what the walk says of them, and that it writes and deletes nothing."""

import sys
from pathlib import Path

import pytest
from accelerate import Accelerator
from accelerate.state import GradientState

from walking import forget_accelerator, loud, said, walk

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
import torch
import pytest
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

folders = ProjectConfiguration(project_dir=sys.argv[1], automatic_checkpoint_naming=True, total_limit=1)
accelerator = Accelerator(cpu=True, mixed_precision="bf16", gradient_accumulation_steps=3, project_config=folders)
torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(6):
    for images, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.log({"loss": loss.item()})
        accelerator.save_state()
        accelerator.save_model(model, sys.argv[1] + "/model")
        accelerator.print(loss.item())
"""


def test_checkpoints_are_neither_written_nor_rotated_by_the_walk(tmp_path: Path) -> None:
    script, folder = tmp_path / "saves.py", tmp_path / "project"
    script.write_text(SCRIPT)
    older = folder / "checkpoints" / "checkpoint_7" / "model.bin"
    older.parent.mkdir(parents=True)
    older.write_text("weights")
    report = walk(script, str(folder))
    assert not loud(report) and not report.faulty, said(report)
    assert report.framework == "accelerate"
    assert "accelerate" in report.versions
    assert [p.name for p in folder.rglob("*") if p.is_file()] == ["model.bin"]
    assert older.read_text() == "weights"


def test_precision_and_updates_are_those_of_the_accelerator(tmp_path: Path) -> None:
    """57 batches in windows of 4, the last one of each epoch stepped too: 15 updates in each of 6 epochs."""
    script = tmp_path / "saves.py"
    script.write_text(SCRIPT.replace("steps=3", "steps=4"))
    setup = walk(script, str(tmp_path / "project")).stages[0]
    assert "bf16" in setup.why
    assert f"{6 * 15} updates planned" in setup.why


def test_the_accelerators_state_is_put_back(tmp_path: Path) -> None:
    script = tmp_path / "saves.py"
    end = "except BaseException:\n    write()\n    raise\n"
    body = SCRIPT.partition("for epoch in")
    looped = "".join(f"    {line}\n" for line in (body[1] + body[2]).splitlines())
    write = (
        "import json\n"
        "def write():\n"
        "    state = accelerator.gradient_state\n"
        "    kept = [accelerator.step, state.sync_gradients, loader.end_of_dataloader, accelerator.save_iteration,\n"
        "            optimizer.step_was_skipped, float(sum(p.detach().double().sum() for p in model.parameters()))]\n"
        "    sys.kept_states.append(json.dumps(kept))\n"  # what a script writes once it was walked is kept away
    )
    script.write_text(f"{body[0]}{write}write()\ntry:\n{looped}{end}")
    states: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "kept_states", states, raising=False)
        report = walk(script, str(tmp_path / "project"))
    assert not report.faulty, said(report)
    before, after = states
    assert after == before


def test_scripts_walked_one_after_the_other_have_accelerators_of_their_own() -> None:
    Accelerator(cpu=True, mixed_precision="bf16")
    forget_accelerator()
    assert not GradientState._shared_state
    assert Accelerator(cpu=True).mixed_precision == "no"
    forget_accelerator()
