"""Accumulation over eight batches of a loss with two terms, of which one has a weight; SGD, clipped."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
order = torch.randperm(len(digits.data))
x = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
y = torch.tensor(digits.target)[order]
ink = x.mean(1)
loader = DataLoader(TensorDataset(x[:1440], y[:1440], ink[:1440]), batch_size=8, shuffle=True)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.digit, self.ink = nn.Linear(64, 10), nn.Linear(64, 1)

    def forward(self, pictures):
        features = self.body(pictures)
        return self.digit(features), self.ink(features).squeeze(-1)


accelerator = Accelerator(cpu=True)
model = TwoHeads()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(6):
    for step, (pictures, labels, amount) in enumerate(loader, start=1):
        digit, guess = model(pictures)
        loss = nn.functional.cross_entropy(digit, labels) + 0.5 * nn.functional.mse_loss(guess, amount)
        accelerator.backward(loss / 8)
        if step % 8 == 0 or step == len(loader):
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
with torch.no_grad():
    print((model(x[1440:])[0].argmax(1) == y[1440:]).float().mean().item())
