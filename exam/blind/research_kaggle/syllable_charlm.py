"""Character-level language model with a GRU.

The script builds a synthetic corpus of pseudo-words, trains the model with
random crops and reports bits per character on the held-out tail.
"""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Config:
    block_size: int = 48
    batch_size: int = 24
    hidden: int = 96
    emb: int = 32
    iters: int = 500
    eval_every: int = 125
    lr: float = 4e-3
    seed: int = 1337


def build_corpus(n_chars=40000, seed=7):
    """Pseudo-text: words from syllables, sentences from a sparse word graph."""
    rng = np.random.default_rng(seed)
    syll = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    words = ["".join(rng.choice(syll, size=rng.integers(2, 4))) for _ in range(90)]
    follow = [rng.choice(len(words), size=5, replace=False) for _ in words]
    out, size, w = [], 0, 0
    while size < n_chars:
        sentence = []
        for _ in range(rng.integers(4, 9)):
            sentence.append(words[w])
            w = int(rng.choice(follow[w]))
        text = " ".join(sentence) + ". "
        out.append(text)
        size += len(text)
    return "".join(out)


class CharGRU(nn.Module):
    def __init__(self, vocab, cfg):
        super().__init__()
        self.embed = nn.Embedding(vocab, cfg.emb)
        self.rnn = nn.GRU(cfg.emb, cfg.hidden, batch_first=True)
        self.head = nn.Linear(cfg.hidden, vocab)

    def forward(self, x, state=None):
        h, state = self.rnn(self.embed(x), state)
        return self.head(h), state


class CropSampler:
    """Draws random (input, target) crops from an encoded text."""

    def __init__(self, data, cfg):
        self.data = data
        self.cfg = cfg

    def get_batch(self):
        rng = np.random.default_rng(self.cfg.seed)
        starts = rng.integers(0, len(self.data) - self.cfg.block_size - 1, size=self.cfg.batch_size)
        x = torch.stack([self.data[s:s + self.cfg.block_size] for s in starts])
        y = torch.stack([self.data[s + 1:s + 1 + self.cfg.block_size] for s in starts])
        return x, y


@torch.no_grad()
def bits_per_char(model, data, block=200):
    model.eval()
    n = (len(data) - 1) // block
    x = data[:n * block].view(n, block)
    y = data[1:n * block + 1].view(n, block)
    logits, _ = model(x)
    nll = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    model.train()
    return nll.item() / np.log(2)


@torch.no_grad()
def sample(model, stoi, itos, prompt="", n=80):
    model.eval()
    idx = torch.tensor([[stoi[c] for c in prompt]])
    logits, state = model(idx)
    text = prompt
    for _ in range(n):
        probs = torch.softmax(logits[:, -1] / 0.8, dim=-1)
        nxt = torch.multinomial(probs, 1)
        text += itos[nxt.item()]
        logits, state = model(nxt, state)
    return text


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    text = build_corpus()
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    itos = {i: c for c, i in stoi.items()}
    data = torch.tensor([stoi[c] for c in text])
    cut = int(0.85 * len(data))
    train_data, val_data = data[:cut], data[cut:]

    sampler = CropSampler(train_data, cfg)
    model = CharGRU(len(chars), cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=cfg.iters, eta_min=2e-4)

    for it in range(1, cfg.iters + 1):
        x, y = sampler.get_batch()
        logits, _ = model(x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if it % cfg.eval_every == 0:
            print(f"iter {it}: train loss {loss.item():.3f}")

    print("sample:", sample(model, stoi, itos, prompt="ba"))
    print(f"held-out bits per character: {bits_per_char(model, val_data):.3f}")


if __name__ == "__main__":
    main()
