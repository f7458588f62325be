import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=64)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


@torch.no_grad()
def evaluate(model, loader):
    correct = 0
    for inputs, labels in loader:
        correct += (model(inputs).argmax(1) == labels).sum().item()
    return correct / len(loader.dataset)


for epoch in range(10):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    print(f"epoch {epoch}: {evaluate(model, valid):.1f} %")
