import numpy as np
import torch
from sklearn.datasets import make_regression
from sklearn.utils import shuffle
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
raw, y = make_regression(500, 8, noise=0.2, coef=False, random_state=0)
y /= 100
X, y = shuffle(raw, y, random_state=1)
data = TensorDataset(torch.tensor(X[:400], dtype=torch.float32), torch.tensor(y[:400], dtype=torch.float32))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(20):
    for features, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features).squeeze(1), target)
        loss.backward()
        optimizer.step()
print(np.abs(y[400:] - model(torch.tensor(X[400:], dtype=torch.float32)).detach().squeeze(1).numpy()).mean())
