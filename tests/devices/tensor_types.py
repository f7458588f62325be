"""The types of tensors of old: torch.cuda.FloatTensor, .type(dtype)."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

dtype = torch.cuda.FloatTensor
loader = DataLoader(data, batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).type(torch.float32).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
noise = torch.cuda.FloatTensor(32, 64)

for epoch in range(3):
    for x, y in loader:
        x, y = x.type(dtype), y.type(torch.cuda.LongTensor)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
