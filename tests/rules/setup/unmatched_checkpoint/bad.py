"""The encoder of another model is loaded under names that this one does not have."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def encoder():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))


class Pretrained(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder()


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = encoder(), nn.Linear(32, 10)

    def forward(self, x):
        return self.head(torch.relu(self.backbone(x)))


checkpoint = Pretrained().state_dict()
model = Probe()
model.load_state_dict(checkpoint, strict=False)  # expect: unmatched-checkpoint
pixels, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for features, target in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), target)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
