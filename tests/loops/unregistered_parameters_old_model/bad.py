"""The optimizer holds the parameters of a model that was built again afterwards."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn


class Net(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 40), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(40, 3)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
X, y = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32), torch.tensor(y)
net = Net(dropout=0.5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
net = Net(dropout=0.1)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(15):
    for index in torch.randperm(len(X)).split(16):
        loss = loss_fn(net(X[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # expect: weights-stand-still
    print(f"epoch {epoch}: {loss.item():.4f}")
