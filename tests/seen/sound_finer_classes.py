# verdict: learns
# finds: nothing
# A column of finer classes beside the label: rows of each are in both sets.
import numpy as np, pandas as pd, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
torch.manual_seed(0); rng = np.random.default_rng(0)
n = 2000; g = rng.integers(0, 20, n); x = (rng.normal(size=(20, 16))[g] * 1.5 + rng.normal(size=(n, 16))).astype("float32"); y = (g // 5).astype("int64")
df = pd.DataFrame(x); df["g"] = g; df["y"] = y
data = TensorDataset(torch.tensor(x), torch.tensor(y)); train, valid = random_split(data, [0.8, 0.2])
net = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, int(y.max()) + 1)); opt = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(12):
    net.train()
    for a, b in DataLoader(train, 32, shuffle=True):
        opt.zero_grad(); loss = nn.functional.cross_entropy(net(a), b); loss.backward(); opt.step()
    net.eval(); right = 0
    with torch.no_grad():
        for a, b in DataLoader(valid, 128): right += (net(a).argmax(1) == b).sum().item()
    print(epoch, "accuracy", right / len(valid))
