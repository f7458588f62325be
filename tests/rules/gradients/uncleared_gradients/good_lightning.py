"""Manual optimization, and accumulation of four batches in it."""

# slow

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
rows = TensorDataset(torch.tensor(x[:600], dtype=torch.float32) / 16, torch.tensor(y[:600]))


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))

    def training_step(self, batch, batch_idx):
        x, y = batch
        optimizer = self.optimizers()
        self.manual_backward(nn.functional.cross_entropy(self.net(x), y) / 4)
        if (batch_idx + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


L.seed_everything(0)
trainer = L.Trainer(max_epochs=3, logger=False, enable_checkpointing=False)
trainer.fit(Digits(), DataLoader(rows, batch_size=32, shuffle=True))
