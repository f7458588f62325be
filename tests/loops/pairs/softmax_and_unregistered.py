"""Convolutions in a plain list, and probabilities given to CrossEntropyLoss."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self, channels=(1, 12, 24)):
        super().__init__()
        self.blocks = [  # expect: unregistered-parameters
            nn.Sequential(nn.Conv2d(a, b, 3), nn.ReLU()) for a, b in zip(channels, channels[1:])
        ]
        self.classify = nn.Sequential(
            nn.Flatten(),
            nn.Linear(24 * 16, 10),
            nn.Softmax(dim=-1),  # expect: double-activation
        )

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.classify(x)


def main():
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
    loader = DataLoader(TensorDataset(x, torch.tensor(digits.target)), batch_size=60, shuffle=True)
    model, criterion = ConvNet(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        for batch_idx, (data, target) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(data), target)
            loss.backward()
            optimizer.step()
            if batch_idx % 10 == 0:
                print(f"{epoch} {batch_idx} {loss.item():.4f}")


main()
