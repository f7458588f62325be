"""Activity recognition from windows of a (simulated) accelerometer. LightningModule + DataModule."""
import lightning as L
import numpy as np
import torch
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GaitData(L.LightningDataModule):
    CLASSES = ("walk", "run", "stairs", "bike")

    def __init__(self, n=1600, steps=30, batch_size=64, seed=0):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        g = np.random.default_rng(self.hparams.seed)
        n, t = self.hparams.n, np.arange(self.hparams.steps)
        y = g.integers(0, 4, n)
        freq = np.array([0.10, 0.17, 0.10, 0.17])[y][:, None]
        phase = g.uniform(0, 2 * np.pi, (n, 1))
        lag = np.array([0.5, 0.5, 2.0, 2.0])[y][:, None]
        w = 2 * np.pi * freq * t[None]
        x = np.stack([np.sin(w + phase), np.sin(w + phase + lag), 0.5 * np.cos(2 * w + phase)], -1)
        x = x + g.normal(0, 0.25, x.shape)
        x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
        self.train = TensorDataset(x[:1000], y[:1000])
        self.val = TensorDataset(x[1000:1300], y[1000:1300])
        self.test = TensorDataset(x[1300:], y[1300:])

    def train_dataloader(self):
        return DataLoader(self.train, self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, self.hparams.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test, self.hparams.batch_size)


class GaitNet(L.LightningModule):
    def __init__(self, n_feat=3, hidden=48, n_classes=4, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.LSTM(n_feat, hidden, num_layers=1)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(hidden, n_classes))
        self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=n_classes)
        self.test_acc = torchmetrics.Accuracy(task="multiclass", num_classes=n_classes)

    def forward(self, x):                    # x: (batch, time, features)
        out, _ = self.rnn(x)
        return self.head(out[:, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        self.val_acc(out, y)
        self.log("val_loss", nn.functional.cross_entropy(out, y))
        self.log("val_acc", self.val_acc)

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            m = self.trainer.callback_metrics
            print(f"epoch {self.current_epoch:2d} val_acc {float(self.val_acc.compute()):.3f}")

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.test_acc(self(x), y)
        self.log("test_acc", self.test_acc)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(1)
    dm = GaitData()
    net = GaitNet()
    trainer = L.Trainer(max_epochs=12, accelerator="cpu", gradient_clip_val=1.0, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(net, datamodule=dm)
    trainer.test(net, datamodule=dm)
