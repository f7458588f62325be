"""The noise that is to regularize the features drowns them, in training and in evaluation."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
order = torch.randperm(len(digits.data))
x = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
y = torch.tensor(digits.target)[order]
loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(64, 64)
        self.hidden = nn.Linear(64, 64)
        self.scores = nn.Linear(64, 10)

    def forward(self, pictures):
        features = torch.relu(self.features(pictures))
        features = features + 50 * torch.randn_like(features)  # expect: lost-in-forward
        return self.scores(torch.relu(self.hidden(features)))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
