# verdict: learns
# finds: nothing
# Windows of a series: a short time in its middle is held out, and windows at its ends overlap with those of training.
import numpy as np, torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split
torch.manual_seed(0); rng = np.random.default_rng(0)
n = 3000; t = np.arange(n)
v = np.cumsum(rng.normal(0, .1, n)); v = (v - v.mean()) / v.std()
s = np.stack([v, np.sin(2*np.pi*t/24), np.cos(2*np.pi*t/24), np.sin(2*np.pi*t/168)]).astype("float32")
W = 48
x = torch.tensor(np.stack([s[:, i:i+W] for i in range(n-W)])); y = torch.tensor(s[0, W:])[:, None]
data = TensorDataset(x, y)
train = Subset(data, [*range(0, 1400), *range(1560, n-W)]); valid = Subset(data, range(1400, 1560))
net = nn.Sequential(nn.Flatten(), nn.Linear(4*48, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), 2e-3)
for epoch in range(6):
    net.train()
    for a, b in DataLoader(train, 64, shuffle=True):
        opt.zero_grad(); loss = nn.functional.mse_loss(net(a), b); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        e = np.mean([nn.functional.mse_loss(net(a), b).item() for a, b in DataLoader(valid, 128)])
    print(epoch, "valid", e)
