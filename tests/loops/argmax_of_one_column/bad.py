"""argmax over the single output of a binary classifier: always class 0."""

import torch
from sklearn.datasets import make_moons
from torch import nn

torch.manual_seed(0)
points, moon = make_moons(1000, noise=0.15, random_state=0)
points = torch.tensor(points, dtype=torch.float32)
moon = torch.tensor(moon, dtype=torch.float32)
train_x, train_y, test_x, test_y = points[:800], moon[:800], points[800:], moon[800:]

model = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def accuracy():
    model.eval()
    with torch.no_grad():
        logits = model(test_x)
        predictions = logits.argmax(dim=1)  # expect: argmax-of-one-column
    return (predictions == test_y.long()).float().mean().item()


for epoch in range(200):
    model.train()
    logits = model(train_x).squeeze(1)
    loss = loss_fn(logits, train_y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 40 == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy():.3f}")
print(f"loss {loss.item():.3f} accuracy {accuracy():.3f}")
