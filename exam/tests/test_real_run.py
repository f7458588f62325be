"""What a real run of a program tells the field exam."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "real_run.py"
PROGRAM = '''"""A regression."""
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(64, 3)
targets = inputs.sum(1, keepdim=True)


def fit(model, steps):
    """Some steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return nn.functional.mse_loss(model(inputs), targets).item()


print(f"final error: {fit(nn.Linear(3, 1), 200):.4f}")
'''


def outcome(folder: Path, text: str, seed: int = 0):
    script, out = folder / "train.py", folder / f"{seed}.json"
    script.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, RUNNER, script, out, str(seed)], check=True, capture_output=True, env=os.environ)
    return json.loads(out.read_text(encoding="utf-8"))


def test_the_end_of_a_training_is_measured(tmp_path):
    seen = outcome(tmp_path, PROGRAM)
    assert seen["raised"] is None
    assert seen["train_loss"] < 0.05 and seen["train_score"] > 0.95 and seen["eval_score"] > 0.99
    assert seen["reported"].keys() == {"printed error"} and seen["reported"]["printed error"] < 0.01
    assert seen["names"]["::inputs"]["shape"] == [64, 3] and seen["names"]["::inputs"]["kind"] == "tensor"
    assert seen["names"]["fit::optimizer"]["kind"] == "optimizer"


def test_seeds_of_the_program_are_moved(tmp_path):
    """Two seeds give two trainings, one seed gives one."""
    runs = [outcome(tmp_path, PROGRAM, seed) for seed in (1, 1, 2)]
    losses = [r["train_loss"] for r in runs]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize(
    ("change", "line", "kind"),
    [(("nn.Linear(3, 1)", "nn.Linear(4, 1)"), 15, "RuntimeError"), (("torch.manual_seed(0)", "raise SystemExit(2)"), 6, "SystemExit")],
)  # fmt: skip
def test_an_error_is_told_with_its_line(tmp_path, change, line, kind):
    raised = outcome(tmp_path, PROGRAM.replace(*change))["raised"]
    assert raised["type"] == kind
    assert raised["line"] == line  # the innermost line of the script
