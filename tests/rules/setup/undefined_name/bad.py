"""A log line at every hundredth step uses a name that nothing sets."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
step = 0
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        step += 1
        if not torch.isfinite(loss):
            print(step * rows_per_step, loss.item())  # expect: undefined-name
