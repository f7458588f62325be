# Truncated backpropagation through time: predict a noisy sum of sines, state carried from window to window.
import torch
from torch import nn

torch.manual_seed(0)
B, T, K = 8, 400, 20
t = torch.arange(T + 1, dtype=torch.float32)
phase = torch.rand(B, 1) * 6.28
series = (torch.sin(0.2 * t + phase) + 0.5 * torch.sin(0.53 * t + 2 * phase)).unsqueeze(-1)


def repackage_hidden(h):
    """Wraps hidden states in new tensors, to cut them off from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def init_hidden(self, batch):
        return torch.zeros(1, batch, self.hidden), torch.zeros(1, batch, self.hidden)

    def forward(self, x, h):
        y, h = self.lstm(x, h)
        return self.out(y), h


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(15):
    hidden = model.init_hidden(B)
    total = 0.0
    for start in range(0, T, K):
        x, y = series[:, start:start + K], series[:, start + 1:start + K + 1]
        hidden = repackage_hidden(hidden)
        pred, hidden = model(x, hidden)
        loss = nn.functional.mse_loss(pred, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 0 or epoch == 14:
        print(f"| epoch {epoch:3d} | loss {total / (T // K):.5f}")
