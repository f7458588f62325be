"""The loop also looks for the worst epoch and the hardest class, and stops if the loss explodes."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
best_loss, best_error, highest, worst = float("inf"), 1.0, -float("inf"), 1.0
for epoch in range(10):
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    if loss > 4 * best_loss:
        break
    if loss < best_loss:
        best_loss = loss.item()
    if loss > highest:
        highest = loss.item()
    with torch.no_grad():
        guesses = model(x[1400:]).argmax(1)
    error = (guesses != y[1400:]).float().mean().item()
    if error < best_error:
        best_error = error
    accuracy = (guesses == y[1400:]).float().mean().item()
    if accuracy < worst:
        worst = accuracy
    hardest, lowest = None, 2.0
    for label in range(10):
        share = (guesses == y[1400:])[y[1400:] == label].float().mean().item()
        if share < lowest:
            accuracy = (guesses == y[1400:]).float().mean().item()
    if accuracy < worst:
        worst = accuracy
    hardest, lowest = label, share
    print(epoch, best_loss, best_error, highest, worst, hardest)
