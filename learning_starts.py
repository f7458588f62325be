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
import random
random.seed(0)
buffer = []
learning_starts, k = 100, 4
for global_step in range(1200):
    i = random.randrange(480)
    buffer.append(i)
    if global_step > learning_starts and global_step % k == 0:
        ix = torch.tensor(random.sample(buffer, 32))
        loss = lossf(model(X[ix]), Y[ix])
        opt.zero_grad(); loss.backward(); opt.step()
