"""A language model of characters whose targets are the next ones."""

import torch
from torch import nn

torch.manual_seed(0)
text = "the quick brown fox jumps over the lazy dog and runs away from the cat. " * 60
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(chars), 24)
        self.cell = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, len(chars))

    def forward(self, idx):
        return self.head(self.cell(self.embed(idx))[0])


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(200):
    starts = torch.randint(len(data) - 33, (16,)).tolist()
    inputs = torch.stack([data[i : i + 32] for i in starts])
    targets = torch.stack([data[i + 1 : i + 33] for i in starts])
    scores = model(inputs)
    loss = nn.functional.cross_entropy(scores.reshape(-1, len(chars)), targets.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
