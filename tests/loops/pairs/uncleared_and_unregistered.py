"""Layers in a list that the module does not register, and gradients that nobody clears."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X, y = torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(30, 24), nn.Linear(24, 24)]  # expect: unregistered-parameters
        self.output = nn.Linear(24, 1)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.output(x).squeeze(-1)


model = Stacked()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(6):
    for idx in torch.randperm(len(X)).split(32):
        logits = model(X[idx])
        loss = criterion(logits, y[idx])
        loss.backward()  # expect: uncleared-gradients
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
