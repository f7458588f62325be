"""What a hand-written evaluation compares, counts and keeps is seen in the run alone, at its own lines."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exam.covers import _announced
from exam.programs import ENVIRONMENT
from trainwright.core import Severity
from trainwright.judging.looks import judge_looks
from trainwright.rehearsal.process import Rehearsal, Server
from trainwright.stages import EvaluationFacts
from twins import write_script

TESTS = Path(__file__).parents[1]
FAULTY = [
    "loops/argmax_of_one_column/bad.py",
    "rules/evaluation/crashing_metrics/bad_loop.py",
    "rules/evaluation/metrics_on_logits/bad_loop_sklearn.py",
    "rules/evaluation/metrics_on_logits/bad_loop_values.py",
    "rules/evaluation/metrics_on_logits/bad_pair.py",
    "rules/evaluation/overwritten_count/bad_loss.py",
    "rules/evaluation/unreset_metric/bad_class.py",
    "rules/evaluation/wrong_divisor/bad_mean.py",
]
SOUND = [
    "rules/evaluation/overwritten_count/good_batches.py",
    "rules/evaluation/unreset_metric/good_class.py",
    "rules/evaluation/wrong_divisor/good_mean.py",
]
# Prints what it evaluates: attention takes another way where a mode watches it.
ATTENTIVE = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(64, 5, 8), torch.randint(2, (64,))
body = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True), 2)
model = nn.Sequential(body, nn.Flatten(1), nn.Linear(40, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    model.eval()
    with torch.no_grad():
        for part in torch.arange(64).split(16):
            scores = model(x[part])
            assert type(scores.numpy()) is np.ndarray
            print("sum:", scores.double().sum().item())
            print("right:", (scores.argmax(1) == y[part]).sum().item())
    model.train()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print("modes:", len(torch.overrides._get_current_function_mode_stack()))
print("draw:", torch.rand(1).item())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    paths = f"{TESTS / 'helpers'}:{TESTS.parent / 'src'}"
    with Server(["torch"], {**ENVIRONMENT, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}) as server:
        yield server


@pytest.mark.parametrize("script", [*FAULTY, *SOUND])
def test_an_evaluations_faults_are_named_by_the_run(script: str, server: Server) -> None:
    path = write_script(TESTS / script)
    with Rehearsal(path.name, seconds=30, folder=path.parent, server=server) as rehearsal:
        record = rehearsal.wait()
    assert not record.ended.own_error and not record.watcher_errors, record.watcher_errors
    found, failed = judge_looks(record.looks)
    assert not failed
    loud = {(f.name, f.where.line if f.where else None) for f in found if f.severity != Severity.NOTE}
    assert loud == set(_announced(path.read_text("utf-8"))) - {("nothing", None)}


def test_evaluations_are_answered_as_without_a_watch(tmp_path: Path, server: Server) -> None:
    (tmp_path / "train.py").write_text(ATTENTIVE, encoding="utf-8")
    with Rehearsal("train.py", seconds=30, folder=tmp_path, server=server) as rehearsal:
        record = rehearsal.wait()
    alone = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert record.ended.failure is None and not record.watcher_errors, record
    assert [n.value for n in record.numbers] == [float(line.split(": ")[1]) for line in alone.stdout.splitlines()]
    assert any(EvaluationFacts in look.facts for look in record.looks)
