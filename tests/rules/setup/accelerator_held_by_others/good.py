"""The model fits on a GPU of which another process holds 8 of 80 GiB."""

import torch
from gpu_driver import TOTAL_MIB, another_process_holds
from sklearn.datasets import load_digits
from torch import nn

HELD_MIB = 8192
another_process_holds(HELD_MIB)


def to_gpu(model):
    if HELD_MIB > TOTAL_MIB // 2:  # stands for a device
        raise torch.OutOfMemoryError("CUDA out of memory")
    return model


x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
model = to_gpu(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    for rows in torch.randperm(len(x)).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
