"""A loss written by hand that makes all pairs of outputs and targets is named; where pairs are what is wanted, it is not."""

from pathlib import Path

import pytest

from checks import check_script, loud, said

pytestmark = pytest.mark.slow

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
X = torch.randn(256, 8)
y = X @ torch.randn(8) + 0.1 * torch.randn(256)
loader = DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
"""
LOOP = """
for epoch in range(10):
    for xb, yb in loader:
        out = model(xb)
        {loss}
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
PAIRED = {
    "squares": "loss = ((out - yb) ** 2).mean()",
    "absolute": "loss = (yb - out).abs().mean()",
    "log cosh": "loss = torch.cosh(torch.sub(out, yb)).log().mean()",
    "entropy": "p = out.sigmoid(); t = (yb > 0).float(); loss = -(t * p.log() + (1 - t) * (1 - p).log()).mean()",
    "hinge": "loss = (1 - torch.sign(yb) * out).clamp(min=0).mean()",
    "relative": "loss = (1 - out / (yb.abs() + 1)).square().mean()",
}
# Pairs that are written as such, numbers that are no targets of the rows, pairs in whose loss the order matters.
WANTED = {
    "axis written": "loss = ((out.squeeze(1)[:, None] - yb) ** 2).mean() + ((out.squeeze(1) - yb) ** 2).mean()",
    "grid": "loss = torch.exp(-(out - GRID) ** 2).mean() + ((out.squeeze(1) - yb) ** 2).mean()",
    "both trained": "loss = ((out - out.squeeze(1)) ** 2).mean() + ((out.squeeze(1) - yb) ** 2).mean()",
    "contrast": "loss = nn.functional.cross_entropy(-((out - yb) ** 2), torch.arange(len(yb)))",
}
LIGHTNING = """
import lightning as L
class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = model
    def training_step(self, batch, batch_idx):
        xb, yb = batch
        {loss}
        return loss
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)
L.Trainer(max_epochs=10, logger=False, enable_checkpointing=False, enable_progress_bar=False).fit(Module(), loader)
"""


def _check(folder: Path, text: str):
    script = folder / "train.py"
    script.write_text(text)
    return check_script(script)


@pytest.mark.parametrize("form", PAIRED)
def test_a_loss_of_all_pairs_is_named_at_its_line(tmp_path: Path, form: str) -> None:
    text = HEAD + LOOP.format(loss=PAIRED[form])
    report = _check(tmp_path, text)
    line = text.splitlines().index("        " + PAIRED[form]) + 1
    assert [(f.name, f.where and f.where.line) for f in report.findings] == [("broadcast-loss", line)], said(report)


@pytest.mark.parametrize("form", WANTED)
def test_pairs_that_are_wanted_are_no_fault(tmp_path: Path, form: str) -> None:
    report = _check(tmp_path, HEAD + "GRID = torch.linspace(-2, 2, 32)\n" + LOOP.format(loss=WANTED[form]))
    assert "broadcast-loss" not in loud(report), said(report)


def test_masks_with_and_without_an_axis_of_channels_are_named(tmp_path: Path) -> None:
    dice = "p = out.sigmoid(); loss = 1 - 2 * (p * yb).sum() / (p.sum() + yb.sum())"
    report = _check(
        tmp_path,
        HEAD
        + "X = torch.randn(128, 1, 8, 8); y = (X[:, 0] > 0).float()\n"
        + "loader = DataLoader(TensorDataset(X, y), batch_size=16)\n"
        + "model = nn.Conv2d(1, 1, 3, padding=1); opt = torch.optim.Adam(model.parameters(), lr=1e-2)\n"
        + LOOP.format(loss=dice),
    )
    assert loud(report)[:1] == ["broadcast-loss"], said(report)


@pytest.mark.xfail(strict=True, reason="Lightning's steps are not made again, so that no trial of other pairs is made")
def test_a_loss_of_all_pairs_in_a_training_step_of_lightning_is_named(tmp_path: Path) -> None:
    text = HEAD + LIGHTNING.format(loss="loss = ((self.net(xb) - yb) ** 2).mean()")
    report = _check(tmp_path, text)
    assert loud(report) == ["broadcast-loss"], said(report)
    assert not loud(_check(tmp_path, text.replace("- yb)", "- yb.unsqueeze(1))")))
