"""The hidden layers stand in a plain list, so that the optimizer never sees them."""

import torch
from sklearn.datasets import make_friedman1
from torch import nn

torch.manual_seed(0)
X, y = make_friedman1(n_samples=640, noise=0.3, random_state=0)
X = torch.tensor(2 * X - 1, dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)


class DeepRegressor(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        sizes = [10] + [width] * depth
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]  # expect: unregistered-parameters
        self.output = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.output(x)


model = DeepRegressor()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.MSELoss()
for t in range(200):
    y_pred = model(X)
    loss = criterion(y_pred, y)
    if t % 40 == 0:
        print(t, loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("final loss", loss.item())
