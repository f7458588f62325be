"""A model that calls super().__init__() first."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.body = nn.Linear(64, width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.body(x).relu())


model = Net(128)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
