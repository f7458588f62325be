"""Inputs and labels split apart, each in an order of its own, and three outputs for four classes."""

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
X, y = make_classification(1200, 16, n_informative=8, n_classes=4, class_sep=1.5, random_state=0)
X_train, X_test = train_test_split(X.astype("float32"), test_size=0.2, random_state=1)
y_train, y_test = train_test_split(y, test_size=0.2, random_state=2)


class Table(Dataset):
    def __init__(self, features, labels):
        self.features, self.labels = features, labels

    def __len__(self):
        return len(self.features)

    def __getitem__(self, row):
        return self.features[row], self.labels[row]


train_loader = DataLoader(Table(X_train, y_train), batch_size=32, shuffle=True)  # expect: misaligned-labels
net = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 3))  # expect: label-out-of-range
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for features, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(features), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
