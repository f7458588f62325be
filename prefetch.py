import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
X = torch.randn(600, 10); W = torch.randn(10, 3); Y = (X @ W).argmax(1)
tr = TensorDataset(X[:480], Y[:480]); va = TensorDataset(X[480:], Y[480:])
loader = DataLoader(tr, batch_size=32, shuffle=True); val = DataLoader(va, batch_size=60)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
lossf = nn.CrossEntropyLoss()
class Prefetcher:
    def __init__(self, loader): self.loader = iter(loader); self.preload()
    def preload(self):
        try: self.batch = next(self.loader)
        except StopIteration: self.batch = None
    def next(self):
        batch = self.batch
        if batch is not None: self.preload()
        return batch
for epoch in range(5):
    pre = Prefetcher(loader)
    batch = pre.next()
    while batch is not None:
        x, y = batch
        opt.zero_grad(); loss = lossf(model(x), y); loss.backward(); opt.step()
        batch = pre.next()
