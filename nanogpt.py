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
import math
K = 4
scaler = torch.amp.GradScaler("cpu", enabled=False)
def get_batch():
    ix = torch.randint(480, (16,))
    return X[ix], Y[ix]
x, y = get_batch()
it = 0
while True:
    lr = 1e-2 * min(1, (it + 1) / 10)
    for g in opt.param_groups:
        g["lr"] = lr
    for micro_step in range(K):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = lossf(model(x), y) / K
        x, y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    it += 1
    if it > 100:
        break
