"""Adam at a rate of 0.3 on a small CNN, and the validation compares scores with labels."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train_loader, val_loader):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.3)  # expect: excessive-learning-rate

    def train_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = []
        for x, y in self.val_loader:
            outputs = self.model(x)
            hits.append((outputs == y).float().mean())  # expect: metrics-on-logits
        return torch.stack(hits).mean().item()

    def fit(self, epochs):
        for epoch in range(epochs):
            print(epoch, self.train_epoch(), self.validate())


torch.manual_seed(0)
digits = load_digits()
images, labels = torch.tensor(digits.images / 16).float()[:, None], torch.tensor(digits.target)
train = DataLoader(TensorDataset(images[:1400], labels[:1400]), batch_size=50, shuffle=True)
val = DataLoader(TensorDataset(images[1400:], labels[1400:]), batch_size=64)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)
)
Trainer(net, train, val).fit(4)
