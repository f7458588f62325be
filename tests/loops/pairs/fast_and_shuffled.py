"""Targets permuted, the rows of the table not, and Adam at a rate of 3."""

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

torch.manual_seed(0)
cancer = load_breast_cancer()
table = torch.tensor(cancer.data, dtype=torch.float32)
table = (table - table.mean(0)) / table.std(0)
labels = torch.tensor(cancer.target, dtype=torch.float32)
labels = labels[torch.randperm(len(labels))]  # expect: misaligned-labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(30, 40), nn.Linear(40, 20)
        self.fc3 = nn.Linear(20, 1)

    def forward(self, x):
        x = torch.relu(self.fc2(torch.relu(self.fc1(x))))
        return self.fc3(x).flatten()


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3.0)  # expect: excessive-learning-rate
loss_fn = nn.BCEWithLogitsLoss()
batch_size = 32
for epoch in range(5):
    for start in range(0, len(table), batch_size):
        x, y = table[start : start + batch_size], labels[start : start + batch_size]
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
