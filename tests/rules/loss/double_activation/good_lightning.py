"""A LightningModule that takes the probabilities for its log only."""

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
        self.net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))

    def training_step(self, batch, batch_idx):
        x, y = batch
        scores = self.net(x)
        self.log("confidence", scores.softmax(dim=1).max(dim=1).values.mean())
        return nn.functional.cross_entropy(scores, y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


L.seed_everything(0)
trainer = L.Trainer(max_epochs=3, logger=False, enable_checkpointing=False)
trainer.fit(Digits(), DataLoader(rows, batch_size=32, shuffle=True))
