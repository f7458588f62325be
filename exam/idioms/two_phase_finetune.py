"""Feature extraction first (head only), then everything with smaller rates for the deeper layers."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

d = load_digits()
X = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(d.target)
perm = torch.randperm(len(X))
X, y = X[perm], y[perm]
# source task: even or odd on the first part; target task: which digit, on other rows
source = DataLoader(TensorDataset(X[:800], y[:800] % 2), batch_size=40, shuffle=True)
target = DataLoader(TensorDataset(X[800:1500], y[800:1500]), batch_size=40, shuffle=True)
X_test, y_test = X[1500:], y[1500:]


class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.layer2 = nn.Sequential(nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(96, num_classes)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(x)).flatten(1))


def train_model(model, loader, optimizer, epochs, name):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch in (0, epochs - 1):
            print(f"{name} epoch {epoch}: loss {total / len(loader):.4f}")


def test(model):
    model.eval()
    with torch.no_grad():
        return (model(X_test).argmax(1) == y_test).float().mean().item()


model = Net(2)
train_model(model, source, torch.optim.Adam(model.parameters(), lr=3e-3), 5, "pretrain")

for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 10)
head_opt = torch.optim.Adam(model.fc.parameters(), lr=5e-3)
train_model(model, target, head_opt, 5, "head")
print(f"test accuracy after the head: {test(model):.4f}")

for param in model.parameters():
    param.requires_grad = True
all_opt = torch.optim.Adam([
    {"params": model.layer1.parameters(), "lr": 3e-4},
    {"params": model.layer2.parameters(), "lr": 1e-3},
    {"params": model.fc.parameters(), "lr": 2e-3},
])
train_model(model, target, all_opt, 6, "all")
print(f"test accuracy in the end: {test(model):.4f}")
