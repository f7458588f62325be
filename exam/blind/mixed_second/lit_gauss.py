"""Lightning: mean and variance of the next day's sales from the past two weeks, split by date."""
import logging, math, warnings
import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
SEED, PAST = 0, 14


def shops(n_shops, days, rng):
    t = np.arange(days)
    week = rng.normal(0, .3, (n_shops, 7))
    mu = rng.normal(3, .5, (n_shops, 1)) + week[:, t % 7] + .15 * np.sin(2 * np.pi * t / 91)
    ar = np.zeros((n_shops, days))
    for i in range(1, days):
        ar[:, i] = .7 * ar[:, i - 1] + rng.normal(0, .1, n_shops)
    weekend = np.where(t % 7 >= 5, .25, .08)
    return mu + ar + rng.normal(0, 1, (n_shops, days)) * weekend, t


class Daily(L.LightningDataModule):
    def setup(self, stage=None):
        s, t = shops(40, 420, np.random.default_rng(SEED))
        x, y, d = [], [], []
        for i in range(PAST, s.shape[1]):
            past = s[:, i - PAST:i]
            lvl = past.mean(1, keepdims=True)
            dow = np.repeat(np.eye(7)[t[i] % 7][None], len(s), 0)
            x.append(np.concatenate([past - lvl, dow], 1))
            y.append(np.stack([s[:, i] - lvl[:, 0], past[:, -7] - lvl[:, 0]], 1))
            d += [i] * len(s)
        x = torch.tensor(np.concatenate(x), dtype=torch.float32)
        y = torch.tensor(np.concatenate(y), dtype=torch.float32)
        d = torch.tensor(d)
        part = lambda m: TensorDataset(x[m], y[m])
        self.tr, self.va, self.te = part(d < 300), part((d >= 300) & (d < 360)), part(d >= 360)

    def train_dataloader(self):
        return DataLoader(self.tr, 128, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.va, 1000)

    def test_dataloader(self):
        return DataLoader(self.te, 1000)


class Gauss(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(PAST + 7, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, x):
        m, v = self.net(x).unbind(1)
        return m, nn.functional.softplus(v) + 1e-4

    def nll(self, x, y):
        m, v = self(x)
        return nn.functional.gaussian_nll_loss(m, y, v) + .5 * math.log(2 * math.pi)

    def training_step(self, b, _):
        return self.nll(b[0], b[1][:, 0])

    def validation_step(self, b, _):
        self.log("val_nll", self.nll(b[0], b[1][:, 0]), batch_size=len(b[0]))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch} val NLL {float(self.trainer.callback_metrics['val_nll']):.3f}")

    def test_step(self, b, _):
        x, y = b[0], b[1][:, 0]
        m, v = self(x)
        inside = ((y - m).abs() < 1.645 * v.sqrt()).float().mean()
        self.log_dict({"nll": self.nll(x, y), "mae": (y - m).abs().mean(), "week_ago_mae": (y - b[1][:, 1]).abs().mean(),
                       "coverage90": inside}, batch_size=len(x))

    def configure_optimizers(self):
        o = torch.optim.Adam(self.parameters(), 3e-3)
        return [o], [torch.optim.lr_scheduler.ExponentialLR(o, .8)]


L.seed_everything(SEED, verbose=False)
model, dm = Gauss(), Daily()
trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False, gradient_clip_val=1.0,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, dm)
out = trainer.test(model, dm, verbose=False)[0]
print("test " + " ".join(f"{k} {v:.3f}" for k, v in out.items()))
