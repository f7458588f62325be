"""Patients in another order than their diagnoses: Accelerate."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X, y = torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
train_set = TensorDataset(X[order], y)  # expect: misaligned-labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(30, 64)
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(x)))


accelerator = Accelerator(cpu=True)
loader, model = DataLoader(train_set, batch_size=32, shuffle=True), Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(4):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")
