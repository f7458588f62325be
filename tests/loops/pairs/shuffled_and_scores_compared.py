"""Labels shuffled apart from the pictures, and an accuracy on scores."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
x_train, y_train, x_val, y_val = images[:1400], labels[:1400].copy(), images[1400:], labels[1400:]
rng.shuffle(y_train)
train_set = TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train))  # expect: misaligned-labels
val_set = TensorDataset(torch.from_numpy(x_val), torch.from_numpy(y_val))
train_loader, val_loader = (
    DataLoader(train_set, batch_size=64, shuffle=True),
    DataLoader(val_set, batch_size=64),
)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer, loss_fn = torch.optim.Adam(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
for epoch in range(4):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
    correct = total = 0
    with torch.no_grad():
        for x, y in val_loader:
            output = model(x)
            correct += torch.eq(output, y).sum().item()  # expect: metrics-on-logits
            total += len(y)
    print(epoch, loss.item(), correct / total)
