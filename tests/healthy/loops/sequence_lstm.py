"""An LSTM that tells which of two motifs a noisy series holds; gradients clipped."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Series(Dataset):
    """Sine or sawtooth waves of random phase in noise."""

    def __init__(self, rows, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 2, rows)
        t = np.arange(30)[None, :] / 10 + rng.uniform(0, 1, (rows, 1))
        waves = np.where(self.labels[:, None] == 0, np.sin(2 * np.pi * t), 2 * (t % 1) - 1)
        self.series = (waves + 0.2 * rng.standard_normal(waves.shape)).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.series[i][:, None], self.labels[i]


class Classifier(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.out(h[-1])


torch.manual_seed(3)
train_dl = DataLoader(Series(800, 0), batch_size=32, shuffle=True)
valid_dl = DataLoader(Series(200, 1), batch_size=64)
net = Classifier()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
loss_func = nn.CrossEntropyLoss()

for epoch in range(10):
    net.train()
    for xb, yb in train_dl:
        loss = loss_func(net(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        opt.step()
        opt.zero_grad()
    net.eval()
    with torch.no_grad():
        losses, hits = zip(*[(loss_func(net(xb), yb) * len(yb), (net(xb).argmax(1) == yb).sum()) for xb, yb in valid_dl])
    print(epoch, "valid loss", float(sum(losses)) / 200, "accuracy", float(sum(hits)) / 200)
