# verdict: learns
# finds: rows-measured-twice
# Rare rows are repeated until the classes are even, and only then are rows set aside: copies of a row stand on both sides.
import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import nn

random = np.random.default_rng(4)
values = random.normal(size=(1500, 12)).astype("float32")
labels = (random.random(1500) < 0.08).astype("float32")
rare = np.flatnonzero(labels)
again = random.choice(rare, 1500 - 2 * len(rare))
values, labels = np.concatenate([values, values[again]]), np.concatenate([labels, labels[again]])
x, x_test, y, y_test = (torch.tensor(one) for one in train_test_split(values, labels, test_size=0.25, random_state=0))

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(12, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(30):
    order = torch.randperm(len(x))
    for rows in order.split(64):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows])[:, 0], y[rows])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = ((model(x_test)[:, 0] > 0) == (y_test > 0.5)).float().mean().item()
    print("test accuracy", round(right, 3))
