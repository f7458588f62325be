"""Classifying variable-size point sets (set transformer pooling, Lightning)."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

SHAPES = ("ring", "cross", "two_blobs", "line")


def sample_shape(kind, n, rng):
    t = rng.uniform(0, 2 * np.pi, n)
    u = rng.uniform(-1, 1, n)
    if kind == "ring":
        p = np.stack([np.cos(t), np.sin(t)], 1)
    elif kind == "cross":
        side = rng.random(n) < 0.5
        p = np.where(side[:, None], np.stack([u, 0 * u], 1), np.stack([0 * u, u], 1))
    elif kind == "two_blobs":
        c = np.where(rng.random(n) < 0.5, -0.8, 0.8)
        p = np.stack([c, 0 * c], 1) + rng.normal(0, 0.15, (n, 2))
    else:
        p = np.stack([u, 0 * u], 1)
    a = rng.uniform(0, np.pi)
    rot = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    return (p @ rot.T + rng.normal(0, 0.06, (n, 2))).astype(np.float32)


class PointSets(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(SHAPES), n)
        self.sets = [sample_shape(SHAPES[k], rng.integers(12, 29), rng) for k in self.labels]

    def __len__(self):
        return len(self.sets)

    def __getitem__(self, i):
        return torch.from_numpy(self.sets[i]), int(self.labels[i])


def collate(batch, max_len=30):
    x = torch.zeros(len(batch), max_len, 2)
    mask = torch.zeros(len(batch), max_len, dtype=torch.bool)
    for i, (pts, _) in enumerate(batch):
        x[i, :len(pts)] = pts
        mask[i, :len(pts)] = True
    return x, mask, torch.tensor([y for _, y in batch])


class MAB(nn.Module):
    """Multihead attention block: queries attend to a masked set of keys."""

    def __init__(self, dim, heads):
        super().__init__()
        self.att = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, q, kv, mask):
        h, _ = self.att(q, kv, kv, key_padding_mask=mask, need_weights=False)
        h = self.n1(q + h)
        return self.n2(h + self.ff(h))


class SetClassifier(L.LightningModule):
    def __init__(self, dim=32, heads=4, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.phi = nn.Sequential(nn.Linear(2, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.sab = MAB(dim, heads)
        self.seed = nn.Parameter(torch.randn(1, 1, dim) * 0.2)
        self.pma = MAB(dim, heads)
        self.rho = nn.Linear(dim, len(SHAPES))

    def forward(self, x, mask):
        h = self.phi(x)
        h = self.sab(h, h, mask)
        pooled = self.pma(self.seed.expand(len(x), -1, -1), h, mask)
        return self.rho(pooled.squeeze(1))

    def training_step(self, batch, _):
        x, mask, y = batch
        loss = F.cross_entropy(self(x, mask), y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, mask, y = batch
        acc = (self(x, mask).argmax(1) == y).float().mean()
        self.log("val_acc", acc, batch_size=len(y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-3)


def main():
    L.seed_everything(0, verbose=False)
    train = DataLoader(PointSets(1600, 1), batch_size=50, shuffle=True, collate_fn=collate)
    val = DataLoader(PointSets(500, 2), batch_size=100, collate_fn=collate)
    model = SetClassifier()
    trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(model, train, val)
    m = trainer.callback_metrics
    print(f"train loss {m['loss']:.4f}")
    print(f"validation accuracy {m['val_acc']:.4f}")


if __name__ == "__main__":
    main()
