"""Knowledge distillation on digits in two stages (Lightning)."""
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class DigitsData(L.LightningDataModule):
    def __init__(self, n_labelled=200, batch_size=50):
        super().__init__()
        self.n_labelled, self.batch_size = n_labelled, batch_size

    def setup(self, stage=None):
        d = load_digits()
        x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16.0
        y = torch.tensor(d.target)
        x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=450, random_state=0, stratify=y)
        x_tr, x_va, y_tr, y_va = train_test_split(x_tr, y_tr, test_size=250, random_state=0, stratify=y_tr)
        self.sets = {"train": TensorDataset(x_tr, y_tr), "val": TensorDataset(x_va, y_va),
                     "test": TensorDataset(x_te, y_te)}

    def train_dataloader(self):
        return DataLoader(self.sets["train"], batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.sets["val"], batch_size=250)

    def test_dataloader(self):
        return DataLoader(self.sets["test"], batch_size=250)


def teacher_net():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(48 * 4, 10))


def student_net():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))


class Base(L.LightningModule):
    def __init__(self, net, lr):
        super().__init__()
        self.net, self.lr = net, lr

    def forward(self, x):
        return self.net(x)

    def _score(self, batch, name):
        x, y = batch
        logits = self(x)
        self.log(f"{name}_loss", F.cross_entropy(logits, y), batch_size=len(y))
        self.log(f"{name}_acc", (logits.argmax(1) == y).float().mean(), batch_size=len(y))

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, _):
        self._score(batch, "val")

    def test_step(self, batch, _):
        self._score(batch, "test")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class Distiller(Base):
    def __init__(self, student, teacher, lr=5e-3, temperature=3.0, alpha=0.7):
        super().__init__(student, lr)
        self.T, self.alpha = temperature, alpha
        self.teacher = teacher.requires_grad_(False)

    def on_train_epoch_start(self):
        self.teacher.eval()

    def training_step(self, batch, _):
        x, y = batch
        s = self.net(x)
        with torch.no_grad():
            t = self.teacher(x)
        soft = F.kl_div(
            F.log_softmax(s / self.T, dim=1), F.log_softmax(t / self.T, dim=1),
            reduction="batchmean", log_target=True) * self.T ** 2
        return self.alpha * soft + (1 - self.alpha) * F.cross_entropy(s, y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters(), lr=self.lr)


def run(model, data, epochs):
    stop = EarlyStopping("val_loss", patience=5, mode="min")
    trainer = L.Trainer(max_epochs=epochs, accelerator="cpu", callbacks=[stop], logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, datamodule=data)
    return trainer.test(model, datamodule=data, verbose=False)[0]["test_acc"]


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    data = DigitsData()
    teacher = Base(teacher_net(), lr=3e-3)
    print(f"teacher test accuracy {run(teacher, data, 15):.4f}")
    student = Distiller(student_net(), teacher.net)
    print(f"student test accuracy {run(student, data, 30):.4f}")
