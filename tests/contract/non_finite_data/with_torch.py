"""Patients with missing values in one column: a loop in plain torch."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X, y = torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y)
X[::15, 3] = float("nan")  # the laboratory lost these
train_set = TensorDataset(X, y)  # expect: non-finite-data


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(30, 64)
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(x)))


model = Net()
loader = DataLoader(train_set, batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
