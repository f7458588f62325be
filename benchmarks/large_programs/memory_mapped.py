"""2 GB of rows in a file; one of them, which comes at about step 3,000, is not a number."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    """Rows of a file that is mapped into memory."""

    def __init__(self, folder):
        self.inputs = np.load(f"{folder}/inputs.npy", mmap_mode="r")
        self.labels = np.load(f"{folder}/labels.npy", mmap_mode="r")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        return torch.from_numpy(self.inputs[row].copy()), int(self.labels[row])


torch.manual_seed(0)
loader = DataLoader(Rows(sys.argv[1]), batch_size=256)
model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
