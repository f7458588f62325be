"""Digits with Adam at a rate of 0.5: Lightning."""

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_set = TensorDataset(X, y)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 64)
        self.middle = nn.Linear(64, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        hidden = torch.relu(self.middle(torch.relu(self.hidden(x))))
        return self.head(hidden)

    def training_step(self, batch, batch_idx):
        inputs, labels = batch
        return nn.functional.cross_entropy(self(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.5)  # expect: excessive-learning-rate


quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trainer = L.Trainer(max_epochs=4, accelerator="cpu", **quiet)
trainer.fit(Net(), DataLoader(train_set, batch_size=32, shuffle=True))
