"""Truncated backprop through time with an LSTM on a periodic text; chunks come from a queue."""
from queue import Queue

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_value_

torch.manual_seed(10)

pattern = "the quick brown fox jumps over the lazy dog. "
text = pattern * 60
chars = sorted(set(text))
encode = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([encode[c] for c in text])

B, T = 4, 25
per_row = (len(ids) - 1) // B
inputs = ids[: B * per_row].view(B, per_row)
targets = ids[1: B * per_row + 1].view(B, per_row)


class CharLSTM(nn.Module):
    def __init__(self, vocab, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x, hidden):
        h, hidden = self.lstm(self.emb(x), hidden)
        return self.out(h), hidden


def repackage(hidden):
    return tuple(h.detach() for h in hidden)


model = CharLSTM(len(chars))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)

for epoch in range(6):
    chunks = Queue()
    for s in range(0, per_row - T + 1, T):
        chunks.put((inputs[:, s:s + T], targets[:, s:s + T]))
    chunks.put(None)

    hidden = (torch.zeros(1, B, 48), torch.zeros(1, B, 48))
    total, count = 0.0, 0
    for x, y in iter(chunks.get, None):
        hidden = repackage(hidden)
        logits, hidden = model(x, hidden)
        loss = criterion(logits.reshape(-1, len(chars)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        total += loss.item()
        count += 1
    print(f"| epoch {epoch} | loss {total / count:.4f} | ppl {torch.tensor(total / count).exp().item():.2f}")
