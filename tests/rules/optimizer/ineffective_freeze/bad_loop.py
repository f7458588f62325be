"""Features of the even digits that are to stay as they are while a head learns the odd ones, frozen by an attribute."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
images, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
odd = labels % 2 == 1


def train(model, rows):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        for x, y in DataLoader(rows, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


features = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
train(nn.Sequential(features, nn.Linear(32, 5)), TensorDataset(images[~odd], labels[~odd] // 2))
features.requires_grad = False  # expect: ineffective-freeze
train(nn.Sequential(features, nn.Linear(32, 5)), TensorDataset(images[odd], labels[odd] // 2))
