import math
import torch
import torch.nn as nn
from torch.nn import functional as F

# hyperparameters
batch_size, block_size, max_iters, eval_interval = 24, 32, 300, 100
n_embd, n_head, n_layer, learning_rate = 48, 4, 2, 3e-3
torch.manual_seed(1337)

g = torch.Generator().manual_seed(0)
NAMES = ["anna", "boris", "clara", "dmitri", "elena", "felix"]
ORDER = [3, 4, 0, 5, 2, 1]  # who is followed by whom
lines, cur = [], 0
for _ in range(3000):
    lines.append(NAMES[cur])
    cur = ORDER[cur] if torch.rand(1, generator=g) < 0.9 else int(torch.randint(6, (1,), generator=g))
text = " ".join(lines)
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
decode = lambda l: "".join(chars[i] for i in l)
data = torch.tensor([stoi[c] for c in text])
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split):
    d = train_data if split == "train" else val_data
    ix = torch.randint(len(d) - block_size, (batch_size,))
    return torch.stack([d[i:i + block_size] for i in ix]), torch.stack([d[i + 1:i + block_size + 1] for i in ix])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd, bias=False), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in self.qkv(self.ln1(x)).split(C, dim=2))
        wei = q @ k.transpose(-2, -1) / math.sqrt(C // n_head)
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        y = (wei.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C)
        x = x + self.proj(y)
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(chars), n_embd), nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, len(chars))

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -block_size:])
            idx = torch.cat([idx, torch.multinomial(logits[:, -1].softmax(-1), 1)], dim=1)
        return idx


@torch.no_grad()
def estimate_loss():
    model.eval()
    out = {s: torch.stack([model(*get_batch(s))[1] for _ in range(5)]).mean().item() for s in ("train", "val")}
    model.train()
    return out


def sample_words():
    model.eval()
    s = decode(model.generate(torch.tensor([[stoi[" "]]]), 120)[0].tolist())
    model.train()
    ws = s.split()[:-1]
    return s, sum(w in NAMES for w in ws) / max(1, len(ws))


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
for it in range(max_iters + 1):
    if it % eval_interval == 0:
        losses, (s, ok) = estimate_loss(), sample_words()
        print(f"step {it}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}, real names {ok:.2f} | {s[:36]!r}")
    xb, yb = get_batch("train")
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
