"""A language model that would take labels, with a loss of its own: scores and targets are cut alike."""

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

    def forward(self, idx, labels=None):
        scores = self.head(self.cell(self.embed(idx))[0])
        if labels is not None:
            return nn.functional.cross_entropy(scores[:, :-1].reshape(-1, len(chars)), labels[:, 1:].reshape(-1))
        return scores


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(200):
    starts = torch.randint(len(data) - 33, (16,)).tolist()
    inputs = torch.stack([data[i : i + 32] for i in starts])
    scores = model(inputs)
    kept = scores[:, :-1].reshape(-1, len(chars))
    loss = nn.functional.cross_entropy(kept, inputs[:, :-1].reshape(-1))  # expect: unshifted-labels
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
