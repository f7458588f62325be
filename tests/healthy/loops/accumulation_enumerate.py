"""Gradients accumulated over four micro-batches; the last window is stepped too."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y))
train_set, val_set = torch.utils.data.random_split(dataset, [1536, 261])
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
val_loader = DataLoader(val_set, batch_size=87)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()
accumulation_steps = 4

for epoch in range(8):
    model.train()
    optimizer.zero_grad()
    for i, (inputs, targets) in enumerate(train_loader):
        outputs = model(inputs)
        loss = criterion(outputs, targets) / accumulation_steps
        loss.backward()
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        hits = sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in val_loader)
    print(f"epoch {epoch}: loss {loss.item() * accumulation_steps:.3f} accuracy {hits / len(val_set):.3f}")
