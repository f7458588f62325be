# Two heads (class + regression) on one trunk, losses weighted with learned log-variances; two val loaders
import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(20)
g = np.random.default_rng(20)
W = g.normal(size=(12, 3))


def make(n, shift=0.0):
    x = g.normal(size=(n, 12)) + shift
    h = np.tanh(x @ W * 0.5)
    cls = (h @ np.array([[1.0, -1.0, 0.2], [0.3, 1.0, -1.0], [-1.0, 0.1, 1.0]])).argmax(1)
    reg = 120 + 35 * h[:, 0] * h[:, 1] + 20 * h[:, 2] + g.normal(0, 3, n)
    return x.astype("float32"), cls, reg.astype("float32")


class TwoHeads(L.LightningModule):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))
        self.trunk = nn.Sequential(nn.Linear(12, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.cls, self.reg = nn.Linear(64, 3), nn.Linear(64, 1)
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.cls(h), self.reg(h)[:, 0]

    def training_step(self, batch, _):
        x, c, r = batch
        logits, z = self(x)
        parts = torch.stack([nn.functional.cross_entropy(logits, c),
                             0.5 * nn.functional.mse_loss(z, (r - self.mean) / self.std)])
        loss = (torch.exp(-self.log_var) * parts + 0.5 * self.log_var).sum()
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _, dataloader_idx=0):
        x, c, r = batch
        logits, z = self(x)
        name = ("same", "shifted")[dataloader_idx]
        self.log(f"{name}_acc", (logits.argmax(1) == c).float().mean(), add_dataloader_idx=False)
        self.log(f"{name}_mae", (z * self.std + self.mean - r).abs().mean(), add_dataloader_idx=False)

    def on_validation_end(self):
        m = {k: round(float(v), 3) for k, v in self.trainer.callback_metrics.items()}
        if self.current_epoch % 5 == 0:
            print(self.current_epoch, m, [round(v, 2) for v in self.log_var.tolist()])

    def configure_optimizers(self):
        return torch.optim.AdamW([
            {"params": [*self.trunk.parameters(), *self.cls.parameters(), *self.reg.parameters()]},
            {"params": [self.log_var], "lr": 1e-2, "weight_decay": 0.0}], lr=2e-3)


def loader(parts, **kw):
    return DataLoader(TensorDataset(*map(torch.as_tensor, parts)), **kw)


tr, same, shifted = make(2500), make(500), make(500, 0.5)
model = TwoHeads(float(tr[2].mean()), float(tr[2].std()))
trainer = L.Trainer(max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False,
                    callbacks=[EarlyStopping("same_mae", patience=5, mode="min")])
trainer.fit(model, loader(tr, batch_size=64, shuffle=True),
            [loader(same, batch_size=250), loader(shifted, batch_size=250)])
print("MAE of the mean:", float(np.abs(same[2] - tr[2].mean()).mean()))
for d in trainer.validate(model, [loader(same, batch_size=250), loader(shifted, batch_size=250)], verbose=False):
    print(d)
