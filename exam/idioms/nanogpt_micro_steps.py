"""
A very small GPT on sequences with x[t+1] = (x[t] + x[t-1]) mod 7.
"""
import math
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
vocab_size, block_size = 7, 16
n_embd, n_head = 48, 4
batch_size, gradient_accumulation_steps = 16, 2
learning_rate, weight_decay, grad_clip = 3e-3, 1e-2, 1.0
max_iters, warmup_iters, min_lr = 120, 10, 3e-4
device_type, dtype = "cpu", "bfloat16"
# -----------------------------------------------------------------------------
torch.manual_seed(1337)
ctx = torch.amp.autocast(device_type=device_type, dtype=torch.bfloat16) if dtype == "bfloat16" else nullcontext()


def get_batch():
    seq = [torch.randint(vocab_size, (batch_size,)), torch.randint(vocab_size, (batch_size,))]
    while len(seq) < block_size + 1:
        seq.append((seq[-1] + seq[-2]) % vocab_size)
    data = torch.stack(seq, dim=1)
    return data[:, :-1].contiguous(), data[:, 1:].contiguous()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block() for _ in range(2)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


model = GPT()
scaler = torch.amp.GradScaler("cpu", enabled=(dtype == "float16"))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=weight_decay)

X, Y = get_batch()
iter_num, lossi = 0, []
while True:
    lr = get_lr(iter_num)
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr
    lossf = 0.0
    for micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch()
        lossf += loss.item()
        scaler.scale(loss).backward()
    if grad_clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    lossi.append(lossf)
    iter_num += 1
    if iter_num > max_iters:
        break

model.eval()
with torch.no_grad():
    truth, _ = get_batch()
    out = truth[:, :4]
    while out.size(1) < block_size:
        out = torch.cat([out, model(out)[0][:, -1].argmax(-1, keepdim=True)], dim=1)
hit = (out[:, 4:] == truth[:, 4:]).float().mean().item()
print(f"loss: first {lossi[0]:.4f} last {lossi[-1]:.4f}; generated tokens right {hit:.3f}")
