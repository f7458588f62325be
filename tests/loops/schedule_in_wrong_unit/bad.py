"""Cosine annealing whose length is given in epochs and which is stepped after each batch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(X / 16).float(), torch.tensor(y)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
num_epochs = 10
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = CosineAnnealingLR(optimizer, T_max=num_epochs)  # expect: schedule-in-wrong-unit
criterion = nn.CrossEntropyLoss()

for epoch in range(num_epochs):
    running_loss = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running_loss += loss.item()
    print(f"epoch {epoch}: loss {running_loss / len(loader):.4f} lr {scheduler.get_last_lr()[0]:.2e}")
