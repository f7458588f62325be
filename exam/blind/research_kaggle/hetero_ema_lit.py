"""Heteroscedastic regression with Lightning and an EMA of the weights."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class EMAWeights(L.Callback):
    """Keeps a moving average of the weights and tests with it."""

    def __init__(self, decay=0.99):
        self.decay = decay
        self.shadow = None

    def on_fit_start(self, trainer, pl_module):
        self.shadow = {k: v.detach().clone() for k, v in pl_module.named_parameters()}

    @torch.no_grad()
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        for name, param in pl_module.named_parameters():
            avg = self.shadow[name]
            avg = torch.lerp(avg, param.detach(), 1 - self.decay)

    @torch.no_grad()
    def on_test_start(self, trainer, pl_module):
        for name, param in pl_module.named_parameters():
            param.copy_(self.shadow[name])


class MeanVarianceNet(L.LightningModule):
    def __init__(self, n_features, hidden=64, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.trunk = nn.Sequential(
            nn.Linear(n_features, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.mean = nn.Linear(hidden, 1)
        self.log_var = nn.Linear(hidden, 1)
        self.test_pred = []

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h).squeeze(-1), self.log_var(h).squeeze(-1).clamp(-6, 4)

    @staticmethod
    def nll(mu, log_var, y):
        return 0.5 * (log_var + (y - mu) ** 2 * torch.exp(-log_var)).mean()

    def training_step(self, batch, batch_idx):
        x, y = batch
        mu, log_var = self(x)
        warm = self.current_epoch < 5
        loss = nn.functional.mse_loss(mu, y) if warm else self.nll(mu, log_var, y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def test_step(self, batch, batch_idx):
        x, y = batch
        mu, log_var = self(x)
        self.test_pred.append((mu, log_var, y))

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-4)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "epoch"}}


def friedman_like(n, rng):
    x = rng.uniform(0, 1, size=(n, 6)).astype(np.float32)
    f = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 8 * x[:, 3]
    sd = 0.3 + 2.0 * x[:, 4]
    return x, (f + sd * rng.standard_normal(n)).astype(np.float32), f.astype(np.float32)


def main():
    L.seed_everything(1, verbose=False)
    rng = np.random.default_rng(1)
    x_tr, y_tr, _ = friedman_like(2400, rng)
    x_te, y_te, f_te = friedman_like(600, rng)
    mu_y, sd_y = y_tr.mean(), y_tr.std()
    mu_x, sd_x = x_tr.mean(0), x_tr.std(0)

    def loader(x, y, shuffle):
        ds = TensorDataset(torch.from_numpy((x - mu_x) / sd_x), torch.from_numpy((y - mu_y) / sd_y))
        return DataLoader(ds, batch_size=64, shuffle=shuffle)

    model = MeanVarianceNet(n_features=x_tr.shape[1])
    trainer = L.Trainer(
        max_epochs=30, accelerator="cpu", callbacks=[EMAWeights(decay=0.98)], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, loader(x_tr, y_tr, True))
    print(f"final train loss {trainer.callback_metrics['train_loss']:.4f}")
    trainer.test(model, loader(x_te, y_te, False), verbose=False)

    mu, log_var, y = (torch.cat(t) for t in zip(*model.test_pred))
    pred = mu.numpy() * sd_y + mu_y
    r2 = 1 - np.mean((pred - f_te) ** 2) / f_te.var()
    print(f"test nll {model.nll(mu, log_var, y):.4f}  R2 of the mean {r2:.4f}")


if __name__ == "__main__":
    main()
