import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
random.seed(0)


def sample():
    n = random.randint(3, 14)
    seq = torch.randint(1, 9, (n,))
    return seq, int(seq[0] > 4) * 2 + int(seq[-1] > 4)


data = [sample() for _ in range(1200)]
held = data[1000:]
data = data[:1000]


class BucketSampler:
    def __init__(self, lengths, bs):
        self.lengths, self.bs = lengths, bs

    def __len__(self):
        return -(-len(self.lengths) // self.bs)

    def __iter__(self):
        keyed = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i] + random.random())
        chunks = [keyed[i : i + self.bs] for i in range(0, len(keyed), self.bs)]
        random.shuffle(chunks)
        yield from chunks


collate = lambda rows: (
    pad_sequence([r[0] for r in rows], batch_first=True),
    torch.tensor([len(r[0]) for r in rows]),
    torch.tensor([r[1] for r in rows]),
)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 16, padding_idx=0)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.out = nn.Linear(32, 4)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.out(h[-1])


loader = DataLoader(data, batch_sampler=BucketSampler([len(s) for s, _ in data], 25), collate_fn=collate)
model = Reader()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
ids_v, len_v, y_v = collate(held)
for epoch in range(8):
    seen = loss_sum = 0
    for ids, lengths, y in loader:
        loss = nn.functional.cross_entropy(model(ids, lengths), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        loss_sum += loss.item() * len(y)
        seen += len(y)
    with torch.no_grad():
        acc = (model(ids_v, len_v).argmax(1) == y_v).float().mean()
    print(f"epoch {epoch}: loss {loss_sum / seen:.4f} acc {acc:.3f}")
print(f"FINAL loss {loss_sum / seen:.4f} acc {acc:.3f}")
