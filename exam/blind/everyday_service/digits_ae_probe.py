# Stage 1: autoencoder without labels. Stage 2: linear probe on the frozen code with few labels.
import os
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
L.seed_everything(4, verbose=False)
CODE = 10


def build_encoder():
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, CODE), nn.Tanh())


class AutoEncoder(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = build_encoder()
        self.decoder = nn.Sequential(nn.Linear(CODE, 48), nn.ReLU(), nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, _):
        x, = batch
        noisy = x + 0.1 * torch.randn_like(x)
        loss = F.mse_loss(self(noisy), x)
        self.log("recon", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class LinearProbe(L.LightningModule):
    def __init__(self, ckpt_path, n_classes=10, lr=2e-2):
        super().__init__()
        self.encoder = build_encoder()
        state = torch.load(ckpt_path, map_location="cpu", weights_only=True)["state_dict"]
        self.encoder.load_state_dict(state, strict=False)
        for p in self.encoder.parameters():
            p.requires_grad = False
        self.head = nn.Linear(CODE, n_classes)
        self.lr = lr

    def forward(self, x):
        self.encoder.eval()
        return self.head(self.encoder(x))

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.head.parameters(), lr=self.lr, weight_decay=1e-4)


def main():
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16.0, dtype=torch.float32)
    y = torch.tensor(y)
    pool, test = train_test_split(torch.arange(len(X)), test_size=0.25, stratify=y, random_state=0)
    few, _ = train_test_split(pool, train_size=300, stratify=y[pool], random_state=0)

    quiet = dict(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False)
    folder = tempfile.mkdtemp()

    ae = AutoEncoder()
    pre = L.Trainer(max_epochs=40, enable_checkpointing=False, **quiet)
    pre.fit(ae, DataLoader(TensorDataset(X[pool]), batch_size=64, shuffle=True))
    path = os.path.join(folder, "autoencoder.ckpt")
    pre.save_checkpoint(path)
    print("reconstruction mse %.4f" % pre.callback_metrics["recon"])

    probe = LinearProbe(path)
    trainer = L.Trainer(max_epochs=40, enable_checkpointing=False, num_sanity_val_steps=0,
                        check_val_every_n_epoch=10, **quiet)
    trainer.fit(probe, DataLoader(TensorDataset(X[few], y[few]), batch_size=32, shuffle=True),
                DataLoader(TensorDataset(X[test], y[test]), batch_size=256))
    print("probe train loss %.4f" % trainer.callback_metrics["train_loss"])
    print("probe test accuracy %.4f" % trainer.callback_metrics["val_acc"])


if __name__ == "__main__":
    main()
