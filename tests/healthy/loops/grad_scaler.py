"""The AMP recipe with a GradScaler: unscale, clip, step, update."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
amp_dtype = torch.float16 if device == "cuda" else torch.bfloat16
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=70, shuffle=True)

net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler(device, init_scale=2.0**10)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(8):
    for inp, target in loader:
        inp, target = inp.to(device), target.to(device)
        with torch.autocast(device_type=device, dtype=amp_dtype):
            output = net(inp)
            loss = loss_fn(output, target)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    with torch.no_grad():
        acc = (net(X[1400:].to(device)).argmax(1).cpu() == y[1400:]).float().mean()
    print(f"{epoch} loss {loss.item():.3f} acc {acc.item():.3f} scale {scaler.get_scale():.0f}")
