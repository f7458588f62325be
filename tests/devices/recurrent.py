"""A GRU whose first state is made on the device of its weights."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(8, 32, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        start = torch.zeros(1, x.size(0), 32).to(x.device)
        assert next(self.parameters()).is_cuda
        read, _ = self.cell(x, start)
        return self.head(read[:, -1])


net = Reader().cuda()
loader = DataLoader(data, batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

for epoch in range(3):
    for x, y in loader:
        x = x.view(-1, 8, 8).cuda()
        loss = nn.functional.cross_entropy(net(x), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
