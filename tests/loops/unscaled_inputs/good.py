"""The wine table, standardized."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
dataset = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(dataset, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(15):
    right = 0
    for features, target in loader:
        optimizer.zero_grad()
        scores = model(features)
        loss = criterion(scores, target)
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == target).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {right / len(dataset):.3f}")
