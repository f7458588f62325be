"""No loader: a function judges the raw rows, and the model was trained on scaled ones."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(1)
rows, target = load_breast_cancer(return_X_y=True)
raw, raw_new, y, y_new = train_test_split(rows, target, test_size=0.25, random_state=1)
x = torch.tensor(StandardScaler().fit_transform(raw), dtype=torch.float32)
x_new = torch.tensor(raw_new, dtype=torch.float32)
y, y_new = torch.tensor(y, dtype=torch.float32), torch.tensor(y_new, dtype=torch.float32)
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@torch.no_grad()
def accuracy(network, features, labels):
    return ((network(features).squeeze() > 0) == labels).float().mean()  # expect: differently-scaled-sets


for epoch in range(120):
    loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 40 == 39:
        print(f"{epoch} {loss:.4f} {accuracy(model, x_new, y_new):.3f}")
