"""The model gets each image beside another one of the batch on purpose, and the loss the labels of the first."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Beside(nn.Module):
    """Classes of images, with a part of other images mixed into their features."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x, other):
        return self.head((0.9 * self.body(x) + 0.1 * self.body(other)).relu())


x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=64, shuffle=True)
model = Beside()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    for images, labels in loader:
        optimizer.zero_grad()
        scores = model(images, images[torch.randperm(len(images))])
        nn.functional.cross_entropy(scores, labels).backward()
        optimizer.step()
