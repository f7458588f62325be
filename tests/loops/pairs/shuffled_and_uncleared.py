"""A data set that reorders its images and not their labels, and a loop that never clears gradients."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, rows, seed=0):
        digits = load_digits()
        order = np.random.default_rng(seed).permutation(rows)
        self.images = digits.images[:rows][order]
        self.labels = digits.target[:rows]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.as_tensor(self.images[i] / 16, dtype=torch.float32)
        return {"image": image[None], "label": int(self.labels[i])}


class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(432, 10))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.02)
        self.data = DataLoader(Digits(900), batch_size=50, shuffle=True)  # expect: misaligned-labels

    def fit(self, epochs):
        for epoch in range(epochs):
            for batch in self.data:
                loss = nn.functional.cross_entropy(self.net(batch["image"]), batch["label"])
                loss.backward()  # expect: uncleared-gradients
                self.optimizer.step()
            print(epoch, loss.item())


torch.manual_seed(0)
Learner().fit(3)
