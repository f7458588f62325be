"""Two-headed network on cultivar data: class head plus regression head.

Manual optimization in Lightning: the trunk and the heads have separate
optimizers, the inputs are mixed up, and the gradient of the regression output
with respect to the input is penalized. Task weights are learned
(Kendall et al. style log-variances).
"""
import logging
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

N_CLASSES = 4


def cultivars(n, seed, structure_seed=10):
    s = np.random.default_rng(structure_seed)
    centers = s.normal(0, 1.6, (N_CLASSES, 8))
    w = s.normal(0, 1, 8)
    rng = np.random.default_rng(seed)
    c = rng.integers(0, N_CLASSES, n)
    x = centers[c] + rng.normal(0, 1, (n, 8))
    r = np.tanh(x @ w / 2) * 2 + 0.5 * x[:, 0] + rng.normal(0, 0.2, n)
    return x.astype(np.float32), c, r.astype(np.float32)


class TwoHeads(L.LightningModule):
    def __init__(self, mixup=0.3, gp_weight=0.005, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.trunk = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.cls = nn.Linear(64, N_CLASSES)
        self.reg = nn.Linear(64, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.cls(h), self.reg(h).squeeze(-1)

    def mix(self, x, c, r):
        lam = float(np.random.beta(self.hparams.mixup, self.hparams.mixup))
        j = torch.randperm(len(x))
        onehot = F.one_hot(c, N_CLASSES).float()
        blend = lambda a: lam * a + (1 - lam) * a[j]
        return blend(x), blend(onehot), blend(r)

    def training_step(self, batch, batch_idx):
        trunk_opt, head_opt = self.optimizers()
        x, target, r = self.mix(*batch)
        x.requires_grad_(True)
        logits, pred = self(x)
        grad, = torch.autograd.grad(pred.sum(), x, create_graph=True)
        penalty = grad.pow(2).sum(1).mean()
        task = torch.stack([F.cross_entropy(logits, target), F.mse_loss(pred, r)])
        loss = (torch.exp(-self.log_vars) * task + 0.5 * self.log_vars).sum() + self.hparams.gp_weight * penalty
        trunk_opt.zero_grad()
        head_opt.zero_grad()
        self.manual_backward(loss)
        trunk_opt.step()
        head_opt.step()
        self.log("loss", loss, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        for sch in self.lr_schedulers():
            sch.step()

    def configure_optimizers(self):
        trunk = torch.optim.AdamW(self.trunk.parameters(), lr=self.hparams.lr, weight_decay=1e-3)
        heads = torch.optim.Adam(
            [*self.cls.parameters(), *self.reg.parameters(), self.log_vars], lr=2 * self.hparams.lr)
        epochs = self.trainer.max_epochs
        scheds = [torch.optim.lr_scheduler.CosineAnnealingLR(o, epochs, eta_min=1e-4) for o in (trunk, heads)]
        return [trunk, heads], scheds


def main():
    L.seed_everything(3, verbose=False)
    train = [torch.from_numpy(a) for a in cultivars(1500, 1)]
    test = [torch.from_numpy(a) for a in cultivars(500, 2)]
    mean, std = train[0].mean(0), train[0].std(0)
    r_mean, r_std = train[2].mean(), train[2].std()
    ds = TensorDataset((train[0] - mean) / std, train[1], (train[2] - r_mean) / r_std)
    model = TwoHeads()
    trainer = L.Trainer(max_epochs=25, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, DataLoader(ds, batch_size=64, shuffle=True))
    model.eval()
    with torch.no_grad():
        logits, pred = model((test[0] - mean) / std)
    pred = pred * r_std + r_mean
    acc = (logits.argmax(1) == test[1]).float().mean()
    r2 = 1 - F.mse_loss(pred, test[2]) / test[2].var(unbiased=False)
    print(f"final loss {trainer.callback_metrics['loss']:.4f}")
    print(f"test accuracy {acc:.4f}  test R2 {r2:.4f}")


if __name__ == "__main__":
    main()
