"""A backbone trained on the even digits, frozen, and a new head on the odd ones."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
odd = labels % 2 == 1

backbone = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten()
)


def pretrained():
    """The backbone, fitted to the even digits by LBFGS."""
    net = nn.Sequential(backbone, nn.Linear(512, 5))
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=40, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[~odd]), labels[~odd] // 2)
        loss.backward()
        return loss

    optimizer.step(closure)
    return backbone


features = pretrained()
for param in features.parameters():
    param.requires_grad = False
model = nn.Sequential(features, nn.Linear(512, 5))
x, y = images[odd], labels[odd] // 2
train_loader = DataLoader(TensorDataset(x[:700], y[:700]), batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(6):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x[700:]).argmax(1) == y[700:]).float().mean()
    print(epoch, round(loss.item(), 4), round(accuracy.item(), 4))
