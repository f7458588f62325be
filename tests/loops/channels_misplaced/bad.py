"""Pictures as (row, column, channel), and a convolution that takes the channels first."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
labels = rng.integers(0, 3, 600)
pictures = rng.normal(0.3, 0.15, (600, 16, 16, 3))
for picture, label in zip(pictures, labels):
    row, column = rng.integers(0, 9, 2)
    picture[row : row + 7, column : column + 7, label] += 0.5  # a red, green or blue square

images = torch.tensor(pictures, dtype=torch.float32)
train_set = TensorDataset(images, torch.tensor(labels))  # expect: channels-misplaced
loader = DataLoader(train_set, batch_size=30, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1, stride=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
