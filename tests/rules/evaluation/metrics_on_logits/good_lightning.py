"""Lightning: the accuracy of the validation takes the class with the largest score."""

import torch
import lightning as L
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
x = torch.tensor(x, dtype=torch.float32) / 16
y = torch.tensor(y)
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=64)


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        scores = self(x)
        self.log("accuracy", (scores.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


L.Trainer(max_epochs=2, logger=False, enable_checkpointing=False).fit(Digits(), train, val)
