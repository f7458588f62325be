"""All training rows are read."""

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x, y = make_classification(1000, 30, n_informative=10, n_redundant=0, class_sep=2.0, random_state=0)
data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
train, held = Subset(data, range(700)), Subset(data, range(700, 1000))
loader = DataLoader(train, batch_size=32, shuffle=True)
held_loader = DataLoader(held, batch_size=100)
model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(10):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(a).argmax(1) == b).sum().item() for a, b in held_loader) / len(held))
