"""A view for the images' own size."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32).reshape(-1, 1, 8, 8), torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 16, 3)
        self.head = nn.Linear(16 * 6 * 6, 10)

    def forward(self, x):
        x = self.convolution(x).relu()
        return self.head(x.view(-1, 16 * 6 * 6))


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
