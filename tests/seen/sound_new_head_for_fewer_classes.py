"""A model that is trained on six classes gets a head for three, and is trained on those: the first steps cannot be made again."""
# verdict: learns
# finds: nothing

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 8)
six, three = x[:, :6].argmax(1), x[:, :3].argmax(1)
trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
model = nn.Sequential(trunk, nn.Linear(32, 6))


def train(labels: torch.Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(15):
        for rows in torch.randperm(400).split(40):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), labels[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print("accuracy", float((model(x[400:]).argmax(1) == labels[400:]).float().mean()))
        model.train()


train(six)
model[1] = nn.Linear(32, 3)
train(three)
