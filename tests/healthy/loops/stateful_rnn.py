"""Truncated backpropagation through time: the hidden state goes on from chunk to chunk, detached."""

import torch
from torch import nn

torch.manual_seed(0)
t = torch.arange(0, 4000) * 0.1
wave = torch.sin(t) * torch.sin(0.31 * t) + 0.02 * torch.randn(len(t))
series = wave.view(8, 500, 1)
chunk = 25


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


def repackage(state):
    return tuple(s.detach() for s in state)


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.MSELoss()
for epoch in range(12):
    state, total, chunks = None, 0.0, 0
    for start in range(0, series.size(1) - chunk - 1, chunk):
        x = series[:, start : start + chunk]
        y = series[:, start + 1 : start + chunk + 1]
        if state is not None:
            state = repackage(state)
        output, state = model(x, state)
        loss = criterion(output, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total, chunks = total + loss.item(), chunks + 1
    print(f"epoch {epoch}: mse {total / chunks:.4f} (variance {wave.var():.3f})")
