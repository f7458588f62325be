"""Without a loader, rows are those of the script's tensors; where the batches pair them otherwise, those of the batches."""

from pathlib import Path

import pytest

from checks import check_script, loud, said

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from sklearn.datasets import load_digits
torch.manual_seed(0)
X, y = load_digits(n_class=6, return_X_y=True)
X, y = torch.tensor(X[:600] / 16).float(), torch.tensor(y[:600])
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(20):
    order = torch.randperm(600)
    for i in range(0, 600, 50):
        {batch}
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BATCHES = {
    "inputs, labels = X[order[i : i + 50]], y[order[i : i + 50]]": [],
    "inputs, labels = X[i : i + 50], y[i : i + 50]": [],
    "inputs, labels = X[order[i : i + 50]] + 0.01 * torch.randn(50, 64), y[order[i : i + 50]]": [],
    "inputs, labels = X[i : i + 50], y[order[i : i + 50]]": ["torn-labels"],
}


@pytest.mark.parametrize("batch", BATCHES)
def test_rows_are_paired_as_the_batches_pair_them(batch: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(batch=batch))
    report = check_script(script)
    assert loud(report) == BATCHES[batch], said(report)


@pytest.mark.parametrize(
    "rows", ["DataLoader(rows, batch_size=16, drop_last=True)", "DataLoader(rows[:0], batch_size=16)"]
)
def test_a_loop_that_is_given_no_batch_is_told_so(rows: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"""
import torch
from torch.utils.data import DataLoader
rows = [(torch.ones(3), torch.ones(1)) for _ in range(9)]
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())
for inputs, targets in {rows}:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
""")
    report = check_script(script)
    assert [f.name for f in report.findings] == ["empty-dataset"] and not report.internal_errors, said(report)
    assert report.failure is None, said(report)


PAIRS = """
import numpy as np
import pandas as pd
import torch
rng = np.random.default_rng(0)
users, items = np.array([f"u{{n}}" for n in range(60)]), np.array([f"i{{n}}" for n in range(40)])
log = pd.DataFrame({{"user": rng.choice(users, 1500), "item": rng.choice(items, 1500)}})
train, test = log[:1200].copy(), log[1200:1260].copy()
{code}
u, i = train["uid"].to_numpy(), train["iid"].to_numpy()
user, item = torch.nn.Embedding(60, 8), torch.nn.Embedding(40, 8)
model = torch.nn.ModuleList([user, item])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    order = rng.permutation(len(u))
    for start in range(0, len(u), 100):
        rows = order[start : start + 100]
        mine = user(torch.as_tensor(u[rows]))
        right, wrong = item(torch.as_tensor(i[rows])), item(torch.as_tensor(rng.integers(0, 40, len(rows))))
        loss = -torch.nn.functional.logsigmoid((mine * (right - wrong)).sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(float((user.weight[test["uid"].to_numpy()] * item.weight[test["iid"].to_numpy()]).sum(1).mean()))
"""
CODES = {
    "separate": "for part in (train, test):\n    part['uid'], part['iid'] = pd.factorize(part['user'])[0], pd.factorize(part['item'])[0]",
    "together": "users, items = pd.Index(train['user'].unique()), pd.Index(train['item'].unique())\n"
    "for part in (train, test):\n    part['uid'], part['iid'] = users.get_indexer(part['user']), items.get_indexer(part['item'])",
}  # fmt: skip


@pytest.mark.parametrize(("code", "named"), [
    pytest.param("separate", ["differently-numbered-sets"], marks=pytest.mark.xfail(
        strict=True, reason="tables are compared only where a loader or a pass reads the evaluation set")),
    ("together", []),
])  # fmt: skip
def test_numbers_that_occur_in_each_others_columns_are_told_apart(code: str, named: list[str], tmp_path: Path) -> None:
    """The evaluation is no pass over a set: the tables tell which numbers stand for whom."""
    script = tmp_path / "train.py"
    script.write_text(PAIRS.format(code=CODES[code]))
    report = check_script(script)
    assert loud(report) == named, said(report)
