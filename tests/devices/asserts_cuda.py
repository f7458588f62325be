"""Goes no further without CUDA."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

assert torch.cuda.is_available(), "this script needs a GPU"
loader = DataLoader(data, batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("cuda")
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.to("cuda")), y.to("cuda"))
        loss.backward()
        optimizer.step()
