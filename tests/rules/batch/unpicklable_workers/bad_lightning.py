"""A data set that keeps its file open, for workers that are started by a fork server."""

import tempfile

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self):
        x, y = load_digits(return_X_y=True)
        self.x, self.y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
        self.log = tempfile.TemporaryFile("w")  # expect: unpicklable-workers

    def __len__(self):
        return len(self.x)

    def __getitem__(self, row):
        return self.x[row], self.y[row]


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch, index):
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    loader = DataLoader(Digits(), 64, shuffle=True, num_workers=2, multiprocessing_context="forkserver")
    L.Trainer(max_epochs=2, logger=False, enable_checkpointing=False).fit(Model(), loader)
