"""Two samplers split one data set between the training and the validation."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
order = torch.randperm(len(data)).tolist()
loader = DataLoader(data, batch_size=64, sampler=SubsetRandomSampler(order[:1400]))
val_loader = DataLoader(data, batch_size=256, sampler=SubsetRandomSampler(order[1400:]))
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in val_loader)
    model.train()
    print(epoch, right)
