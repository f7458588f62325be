# verdict: learns in part
# finds: unlearned-part
# tells: (evaluated once)
# The scaler is fitted anew on the rows of each use, so a warmer test period looks like the usual one: validation is fine, test is not.
import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
random = np.random.default_rng(1)


def rows(count, warmer=0.0):
    values = random.normal(size=(count, 5)) + np.array([warmer, 0, 0, 0, 0])
    target = 3 * values[:, 0] + np.sin(values[:, 1]) + 0.1 * random.normal(size=count)
    return values, target


def loader(values, target, shuffle=False):
    scaled = StandardScaler().fit_transform(values)
    tensors = torch.tensor(scaled, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)
    return DataLoader(TensorDataset(*tensors), 50, shuffle=shuffle)


train, valid, test = loader(*rows(1500), shuffle=True), loader(*rows(500)), loader(*rows(500, warmer=4.0))
model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def error(loader):
    model.eval()
    with torch.no_grad():
        return np.mean([(model(values)[:, 0] - target).abs().mean().item() for values, target in loader])  # finds: unlearned-part


for epoch in range(15):
    model.train()
    for values, target in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(values)[:, 0], target)
        loss.backward()
        optimizer.step()
    print("valid error", round(error(valid), 3))
print("test error", round(error(test), 3))
