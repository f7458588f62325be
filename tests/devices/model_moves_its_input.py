"""The model brings its input to its own device; the loop moves the targets alone."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.body(x.to("cuda"))


net = Net().to("cuda")
loader = DataLoader(data, batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y.to("cuda"))
        loss.backward()
        optimizer.step()
