"""Blocks in a plain list, and sklearn's accuracy_score given the scores."""

import torch
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_dl = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=50, shuffle=True)
valid_dl = DataLoader(TensorDataset(X[1400:], y[1400:]), batch_size=100)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = []  # expect: unregistered-parameters
        for n_in, n_out in ((64, 64), (64, 32)):
            self.blocks.append(nn.Sequential(nn.Linear(n_in, n_out), nn.ReLU()))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Mlp()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    model.train()
    for x, target in train_dl:
        loss = nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    preds, truth = [], []
    with torch.no_grad():
        for x, target in valid_dl:
            preds.append(model(x))
            truth.append(target)
    truth, preds = torch.cat(truth).numpy(), torch.cat(preds).numpy()
    print(epoch, accuracy_score(truth, preds))  # expect: metrics-on-logits
