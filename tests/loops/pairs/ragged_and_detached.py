"""Sums of numbers in lists of any length, collated without padding, and states detached before the head."""

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
ROWS = [torch.randint(1, 10, (int(n),)) for n in torch.randint(2, 8, (600,))]
SUMS = torch.tensor([float(row.sum()) for row in ROWS])
SUMS = (SUMS - SUMS.mean()) / SUMS.std()


def collate(indices):
    numbers = torch.tensor([ROWS[i].tolist() for i in indices])  # expect: ragged-batch
    return numbers, SUMS[indices]


class Adder(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(10, 8, padding_idx=0)
        self.gru = nn.GRU(8, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, numbers):
        _, last = self.gru(self.embed(numbers))
        last = last[-1].data  # expect: severed-graph
        return self.head(last)[:, 0]


def train_epoch(model, loader, optimizer):
    total = 0.0
    for numbers, sums in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(numbers), sums)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


adder, batches = Adder(), DataLoader(range(600), batch_size=30, shuffle=True, collate_fn=collate)
adam = torch.optim.Adam(adder.parameters(), lr=3e-3)
for epoch in range(3):
    print(epoch, train_epoch(adder, batches, adam))
