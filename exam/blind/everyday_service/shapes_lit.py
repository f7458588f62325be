"""Counting-free shape recognition: 4 kinds of 16x16 drawings, CNN in Lightning."""
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
KINDS = ("square", "cross", "circle", "triangle")


def draw(kind, rng, size=16):
    img = rng.normal(0, 0.25, (size, size))
    r = rng.integers(3, 6)
    cy, cx = rng.integers(r, size - r, 2)
    yy, xx = np.mgrid[:size, :size]
    dy, dx = yy - cy, xx - cx
    if kind == "square":
        mask = np.maximum(abs(dy), abs(dx)) == r
    elif kind == "cross":
        mask = ((dy == 0) | (dx == 0)) & (np.maximum(abs(dy), abs(dx)) <= r)
    elif kind == "circle":
        mask = abs(np.hypot(dy, dx) - r) < 0.6
    else:
        mask = ((dy == r) & (abs(dx) <= r)) | ((abs(abs(dx) * 2 - (dy + r)) <= 1) & (abs(dy) <= r))
    img[mask] += rng.uniform(0.8, 1.4)
    return img.astype("float32")


class Shapes(Dataset):
    def __init__(self, n, seed, augment=False):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, len(KINDS), n)
        self.x = np.stack([draw(KINDS[k], rng) for k in self.y])
        self.augment = augment

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = torch.from_numpy(self.x[i]).unsqueeze(0)
        if self.augment and torch.rand(()) < 0.5:
            x = x.flip(-1)
        return x, int(self.y[i])


class ShapeData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train = Shapes(1600, 1, augment=True)
        self.val = Shapes(500, 2)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=250)


class ShapeNet(L.LightningModule):
    def __init__(self, lr=2e-3, decay=0.97):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(24 * 16, 48), nn.ReLU())
        self.head = nn.Linear(48, len(KINDS))

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_acc": (logits.argmax(1) == y).float().mean()})

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=self.hparams.decay)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step", "frequency": 1}}


class Printer(Callback):
    def on_validation_epoch_end(self, trainer, module):
        m = trainer.callback_metrics
        print(f"epoch {trainer.current_epoch} val_loss {m['val_loss']:.3f} val_acc {m['val_acc']:.3f}")


if __name__ == "__main__":
    L.seed_everything(17, verbose=False)
    trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                        gradient_clip_val=1.0, callbacks=[Printer()])
    model = ShapeNet()
    trainer.fit(model, datamodule=ShapeData())
    print("train loss %.4f" % trainer.callback_metrics["train_loss"])
    print("final val accuracy %.4f" % trainer.callback_metrics["val_acc"])
