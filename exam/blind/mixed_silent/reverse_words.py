"""Toy seq2seq: GRU encoder-decoder that reverses made-up words."""
import random
import string

import torch
from torch import nn

random.seed(1)
torch.manual_seed(1)

PAD, BOS, EOS = 0, 1, 2
CHARS = string.ascii_lowercase[:8]
stoi = {c: i + 3 for i, c in enumerate(CHARS)}
VOCAB = len(stoi) + 3


def make_word():
    return "".join(random.choice(CHARS) for _ in range(random.randint(2, 5)))


words = list({make_word() for _ in range(5000)})
random.shuffle(words)
train_words, dev_words = words[:-300], words[-300:]


def encode(batch):
    src = [[stoi[c] for c in w] for w in batch]
    tgt = [[BOS] + s[::-1] + [EOS] for s in src]
    n = max(map(len, src))
    m = max(map(len, tgt))
    src = torch.tensor([[PAD] * (n - len(s)) + s for s in src])
    tgt = torch.tensor([t + [PAD] * (m - len(t)) for t in tgt])
    return src, tgt


class Seq2Seq(nn.Module):
    def __init__(self, hidden=96, emb=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, emb, padding_idx=PAD)
        self.encoder = nn.GRU(emb, hidden, batch_first=True)
        self.decoder = nn.GRU(emb, hidden, batch_first=True)
        self.out = nn.Linear(hidden, VOCAB)

    def forward(self, src, dec_in):
        _, h = self.encoder(self.emb(src))
        y, _ = self.decoder(self.emb(dec_in), h)
        return self.out(y)

    @torch.no_grad()
    def generate(self, src, max_len=8):
        _, h = self.encoder(self.emb(src))
        tok = torch.full((src.size(0), 1), BOS)
        res = []
        for _ in range(max_len):
            y, h = self.decoder(self.emb(tok), h)
            tok = self.out(y[:, -1:]).argmax(-1)
            res.append(tok)
        return torch.cat(res, 1)


def to_text(ids):
    out = ""
    for i in ids.tolist():
        if i == EOS:
            break
        if i >= 3:
            out += CHARS[i - 3]
    return out


model = Seq2Seq()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
ce = nn.CrossEntropyLoss(ignore_index=PAD)

for epoch in range(9):
    model.train()
    random.shuffle(train_words)
    tot, n = 0.0, 0
    for i in range(0, len(train_words), 64):
        src, tgt = encode(train_words[i:i + 64])
        logits = model(src, tgt)
        loss = ce(logits[:, 1:].reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        tot += loss.item()
        n += 1
    model.eval()
    src, _ = encode(dev_words)
    hyp = [to_text(r) for r in model.generate(src)]
    exact = sum(h == w[::-1] for h, w in zip(hyp, dev_words)) / len(dev_words)
    print(f"epoch {epoch}  loss {tot / n:.4f}  dev exact match {exact:.3f}")

for w, h in list(zip(dev_words, hyp))[:5]:
    print(f"  {w:>6} -> {h}")
