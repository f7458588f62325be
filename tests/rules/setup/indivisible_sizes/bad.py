"""Attention with more heads than its size can be divided by."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32).reshape(-1, 8, 8), torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(8, 32)
        self.attention = nn.MultiheadAttention(32, 6, batch_first=True)  # expect: indivisible-sizes
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        rows = self.rows(x)
        return self.head(self.attention(rows, rows, rows)[0].mean(1))


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
