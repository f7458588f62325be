"""Three kinds of wine, numbered from 1, and three outputs; the evaluation computes the loss as well: Accelerate."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
data = TensorDataset(torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y + 1))
train_set, held_set = random_split(data, [130, 48])
model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
loader, held = DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(held_set, batch_size=16)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
accelerator = Accelerator(cpu=True)
model, optimizer, loader, held = accelerator.prepare(model, optimizer, loader, held)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for inputs, labels in held:
            total += criterion(model(inputs), labels).item()
    print(f"epoch {epoch}: loss {total / len(held):.3f}")
