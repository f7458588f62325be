"""A loader of one's own that copies the next batch on a stream meanwhile."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

class Prefetcher:
    def __init__(self, loader):
        self.loader, self.stream = loader, torch.cuda.Stream()

    def __iter__(self):
        for x, y in self.loader:
            with torch.cuda.stream(self.stream):
                x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield x, y

    def __len__(self):
        return len(self.loader)


loader = Prefetcher(DataLoader(data, batch_size=32, shuffle=True, pin_memory=True))
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
