import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(4)


class RegularisedAE(L.LightningModule):
    """Auto-encoder plus a probe classifier on the code, two optimizers -> manual optimization."""

    def __init__(self, code=12):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.enc = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, code))
        self.dec = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())
        self.probe = nn.Linear(code, 10)

    def forward(self, x):
        z = self.enc(x)
        return self.dec(z), z

    def training_step(self, batch, batch_idx):
        x, y = batch
        opt_ae, opt_probe = self.optimizers()

        rec, z = self(x)
        rec_loss = F.mse_loss(rec, x)
        self.manual_backward(rec_loss)
        opt_ae.step()

        cls_loss = F.cross_entropy(self.probe(z.detach()), y)
        self.manual_backward(cls_loss)
        opt_probe.step()

        self.log("train_rec", rec_loss, on_step=False, on_epoch=True)
        self.log("train_cls", cls_loss, on_step=False, on_epoch=True)

    def _eval(self, batch, name):
        x, y = batch
        rec, z = self(x)
        logits = self.probe(z)
        self.log_dict({
            f"{name}_mse": F.mse_loss(rec, x),
            f"{name}_acc": (logits.argmax(1) == y).float().mean(),
        }, on_epoch=True)

    def validation_step(self, batch, batch_idx):
        self._eval(batch, "val")

    def test_step(self, batch, batch_idx):
        self._eval(batch, "test")

    def configure_optimizers(self):
        ae = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], lr=3e-3)
        probe = torch.optim.Adam(self.probe.parameters(), lr=1e-2)
        return ae, probe


def main():
    d = load_digits()
    x = torch.tensor(d.data / 16.0, dtype=torch.float32)
    y = torch.tensor(d.target)
    tr, te = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=d.target)
    va, te = te[:270], te[270:]
    make = lambda idx, **kw: DataLoader(TensorDataset(x[idx], y[idx]), batch_size=64, **kw)

    trainer = L.Trainer(max_epochs=20, accelerator="cpu", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, num_sanity_val_steps=0)
    model = RegularisedAE()
    trainer.fit(model, make(tr, shuffle=True), make(va))
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
    print("pixel variance of the test part:", float(x[te].var(0).mean()))
    trainer.test(model, make(te))


if __name__ == "__main__":
    main()
