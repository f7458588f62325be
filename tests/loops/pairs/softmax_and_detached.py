"""A detached encoder, and a softmax before CrossEntropyLoss."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=48, shuffle=True)


class TwoStage(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 24), nn.Tanh()
        )
        self.classifier = nn.Linear(24, 10)

    def forward(self, x):
        z = self.encoder(x)
        scores = self.classifier(z.detach())  # expect: severed-graph
        return scores.softmax(dim=-1)  # expect: double-activation


model = TwoStage()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(4):
    for x, target in loader:
        loss = ce(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
