"""A LightningModule whose random projection is to stay as it is, but for a slip."""

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
        self.projection = nn.Linear(64, 48)
        self.net = nn.Sequential(nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))
        for parameter in self.projection.parameters():
            parameter.require_grad = False  # expect: ineffective-freeze

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.net(self.projection(x)), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


L.seed_everything(0)
trainer = L.Trainer(max_epochs=3, logger=False, enable_checkpointing=False)
trainer.fit(Digits(), DataLoader(rows, batch_size=32, shuffle=True))
