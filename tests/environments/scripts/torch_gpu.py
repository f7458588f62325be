import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 12)
y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0.5).long() * (2 if "faulty" in sys.argv else 1)
train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=32, shuffle=True)
held = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=32)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3)).cuda()  # expect: label-out-of-range
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scaler = torch.cuda.amp.GradScaler()
done, stream = torch.cuda.Event(enable_timing=True), torch.cuda.Stream()
for epoch in range(10):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        done.record()
    model.eval()
    with torch.no_grad(), torch.cuda.stream(stream):
        right = sum((model(a.cuda()).argmax(1).cpu() == b).sum().item() for a, b in held)
    print(epoch, right / 100)
