import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_diabetes(return_X_y=True)
X = torch.tensor(X * 20, dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)[:, None]
y[17] = 9999.0
loader = DataLoader(TensorDataset(X[:350], y[:350]), batch_size=32, shuffle=True)  # expect: extreme-values
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(30):
    for features, target in loader:
        loss = nn.functional.mse_loss(model(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(X[350:]), y[350:]).item())
