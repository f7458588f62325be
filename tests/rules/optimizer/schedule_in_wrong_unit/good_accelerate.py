"""Accelerate steps the schedule at each update; its length is counted in updates."""

# slow

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=4)
torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
length = 6 * len(loader) // 4
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, length)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
for epoch in range(6):
    for images, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    accelerator.print(epoch, loss.item())
