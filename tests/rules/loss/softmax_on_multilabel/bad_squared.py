"""The same under a squared error."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pixels, digits = load_digits(return_X_y=True)
digits = torch.tensor(digits)
facts = torch.stack([(digits % k == 0).float() for k in (2, 3, 4)], dim=1)
loader = DataLoader(TensorDataset(torch.tensor(pixels / 16).float(), facts), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3), nn.Softmax(1))  # expect: softmax-on-multilabel
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    for features, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features), target)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
