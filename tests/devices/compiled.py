"""torch.compile(mode='max-autotune'), channels-last style calls, bf16 autocast."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")
loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("cuda", dtype=torch.float32)
net = torch.compile(net, mode="max-autotune")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

for epoch in range(3):
    for x, y in loader:
        x, y = x.to("cuda"), y.to("cuda")
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
