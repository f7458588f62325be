"""A data set whose length is misspelled."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

x, y = load_digits(return_X_y=True)


class Digits(Dataset):
    def __len(self):  # expect: misspelled-method
        return len(x)

    def __getitem__(self, i):
        return torch.tensor(x[i] / 16, dtype=torch.float32), y[i]


data = Digits()
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
