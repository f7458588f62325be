"""Lightning: the check's step is that of `Trainer.fit`, healthy modules are checked in silence, nothing is left behind."""

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import trainwright
from checks import check_script, loud, said

pytestmark = pytest.mark.slow

L = pytest.importorskip("lightning")

HEAD = """
import lightning as L, torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

x, y = load_digits(return_X_y=True)
rows = TensorDataset(torch.tensor(x[:600], dtype=torch.float32) / 16, torch.tensor(y[:600]))
L.seed_everything(0)


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss, prog_bar=True)
        return {"loss": loss, "rows": len(x)}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
"""
LOADER = "DataLoader(rows, batch_size=32, shuffle=True)"
HEALTHY = {
    "loggers and callbacks": f"""
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
class Watched(Digits):
    def validation_step(self, batch, batch_idx):
        self.log("val_loss", nn.functional.cross_entropy(self(batch[0]), batch[1]))
stops = [EarlyStopping("val_loss"), ModelCheckpoint(monitor="val_loss")]
L.Trainer(max_epochs=3, callbacks=stops).fit(Watched(), {LOADER}, DataLoader(rows, batch_size=64))
""",
    "data module": """
class Data(L.LightningDataModule):
    def setup(self, stage):
        self.train, self.held = random_split(rows, [500, 100])
    def train_dataloader(self):
        return DataLoader(self.train, batch_size=25, shuffle=True, num_workers=1)
    def val_dataloader(self):
        return DataLoader(self.held, batch_size=50)
L.Trainer(max_epochs=3, logger=False, enable_checkpointing=False).fit(Digits(), datamodule=Data())
""",
    "accumulation, clipping, schedule": f"""
class Scheduled(Digits):
    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        total = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=total)
        return [optimizer], [{{"scheduler": schedule, "interval": "step"}}]
L.Trainer(max_epochs=3, accumulate_grad_batches=2, gradient_clip_val=1.0, logger=False).fit(Scheduled(), {LOADER})
""",
    "warm-up by hand": f"""
class Warm(Digits):
    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, (self.trainer.global_step + 1) / 10)
        optimizer.step(closure=optimizer_closure)
L.Trainer(max_epochs=3, logger=False).fit(Warm(), {LOADER})
""",
    "lbfgs": """
class Newton(Digits):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(64, 10)
    def configure_optimizers(self):
        return torch.optim.LBFGS(self.parameters(), lr=0.1, max_iter=5)
L.Trainer(max_epochs=3, logger=False).fit(Newton(), DataLoader(rows, batch_size=300))
""",
    "two optimizers": f"""
class Adversarial(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())
        self.critic = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    def training_step(self, batch, batch_idx):
        loss = nn.functional.binary_cross_entropy_with_logits
        real, one, zero = batch[0], torch.ones(len(batch[0]), 1), torch.zeros(len(batch[0]), 1)
        first, second = self.optimizers()
        self.toggle_optimizer(first)
        fake = self.generator(torch.randn(len(real), 16))
        first.zero_grad()
        self.manual_backward(loss(self.critic(fake), one))
        first.step()
        self.untoggle_optimizer(first)
        with second.toggle_model():
            second.zero_grad()
            self.manual_backward(loss(self.critic(real), one) + loss(self.critic(fake.detach()), zero))
            second.step()
    def configure_optimizers(self):
        return [torch.optim.Adam(m.parameters(), 2e-4, betas=(0.5, 0.999)) for m in (self.generator, self.critic)], []
L.Trainer(max_epochs=3, logger=False).fit(Adversarial(), {LOADER})
""",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_module_is_checked_in_silence_and_without_a_trace(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(HEAD + HEALTHY[name])
    report = check_script(script)
    assert report.framework == "lightning"
    assert not loud(report) and not report.faulty, said(report)
    assert [f.name for f in tmp_path.iterdir() if f.name != "__pycache__"] == ["train.py"]


def test_a_hook_that_raises_ends_the_script_at_its_line(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(f"{HEAD}\nDigits.configure_optimizers = lambda self: torch.optim.Adam(self.heads)\n"
                      f"L.Trainer(logger=False).fit(Digits(), {LOADER})\n")  # fmt: skip
    report = check_script(script)
    assert report.failure is not None and "heads" in str(report.failure), said(report)
    assert report.failure.where.line == HEAD.count("\n") + 2


class Counted(L.LightningModule):
    """A module that overrides what surrounds a step."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
        self.calls = []

    def training_step(self, batch, batch_idx):
        self.calls.append("step")
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
        self.calls.append("clip")
        self.clip_gradients(optimizer, gradient_clip_val=0.05, gradient_clip_algorithm="norm")

    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
        self.calls.append("clear")
        optimizer.zero_grad()

    def lr_scheduler_step(self, scheduler, metric):
        self.calls.append("schedule")
        scheduler.step()

    def on_after_backward(self):
        self.calls.append("backward")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.5, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def digits():
    x, y = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(x[:192], dtype=torch.float32) / 16, torch.tensor(y[:192]))


def quiet_trainer(**options):
    return L.Trainer(logger=False, enable_checkpointing=False, enable_progress_bar=False,
                     enable_model_summary=False, accelerator="cpu", **options)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_fit_after_a_check_is_fit_without_it():
    results = []
    for check in (False, True):
        torch.manual_seed(0)
        module, loader = Counted(), DataLoader(digits(), batch_size=32, shuffle=True)
        if check:
            trainwright.check(module, loader)
            assert module.calls == [] and module._trainer is None
        quiet_trainer(max_epochs=2).fit(module, loader)
        results.append([*[p.detach().clone() for p in module.parameters()], torch.rand(1)])
    assert all(torch.equal(a, b) for a, b in zip(*results))


def test_a_hook_that_leaves_the_training_step_out_fails_as_it_does_in_lightning(tmp_path) -> None:
    hook = (
        "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):\n        optimizer.step()\n"
    )
    fit = f"L.Trainer(max_epochs=1, logger=False, enable_checkpointing=False).fit(Digits(), {LOADER})\n"
    script = tmp_path / "train.py"
    script.write_text(f"{HEAD}\n{hook}\n\n{fit}", encoding="utf-8")
    report = check_script(script)
    assert report.failure is not None and report.failure.type == "MisconfigurationException", said(report)
    assert report.failure.message.startswith("The closure hasn't been executed."), said(report)
