"""Features taken under no_grad, and NAdam at a rate of 0.5."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(144, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        with torch.no_grad():
            h = self.features(x)  # expect: severed-graph
        return self.head(h)


torch.manual_seed(0)
digits = load_digits()
images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16
loader = DataLoader(TensorDataset(images, torch.from_numpy(digits.target)), batch_size=50, shuffle=True)
model, criterion = DigitNet(), nn.CrossEntropyLoss()
optimizer = torch.optim.NAdam(model.parameters(), lr=0.5)  # expect: excessive-learning-rate
for epoch in range(3):
    for image, digit in loader:
        optimizer.zero_grad()
        loss = criterion(model(image), digit)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
