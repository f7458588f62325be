"""A model and its inputs in float16, with an optimizer whose epsilon survives it."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

loader = DataLoader(data, batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).half().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.cuda().half()).float(), y.cuda())
        loss.backward()
        optimizer.step()
