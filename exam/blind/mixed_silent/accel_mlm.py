"""Masked language modelling from scratch, accelerate, accumulation over 4 micro-batches."""
import math
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForMaskedLM, get_scheduler

PAD, MASK = 0, 1
COLORS = "red blue green white black".split()
ANIMALS = "horse whale eagle snake frog".split()
MOVES = {"horse": "runs", "whale": "swims", "eagle": "flies", "snake": "crawls", "frog": "jumps"}
WHERE = {"horse": "meadow", "whale": "ocean", "eagle": "sky", "snake": "desert", "frog": "pond"}


def sentence():
    a, c = random.choice(ANIMALS), random.choice(COLORS)
    s = f"the {c} {a} {MOVES[a]} in the {WHERE[a]}"
    if random.random() < 0.5:
        s += f" and the {WHERE[a]} is {random.choice(COLORS)}"
    return s.split()


def main():
    set_seed(6)
    acc = Accelerator(cpu=True, gradient_accumulation_steps=4)
    sents = [sentence() for _ in range(3400)]
    vocab = {w: i + 2 for i, w in enumerate(sorted({w for s in sents for w in s}))}
    ids = [[vocab[w] for w in s] for s in sents]
    gen = torch.Generator().manual_seed(0)

    def collate(rows, g=None):
        n = max(map(len, rows))
        x = torch.tensor([r + [PAD] * (n - len(r)) for r in rows])
        attn = (x != PAD).long()
        pick = (torch.rand(x.shape, generator=g) < 0.2) & attn.bool()
        pick[:, 2] |= ~pick.any(1)
        labels = torch.where(pick, x, -100)
        x = torch.where(pick, MASK, x)
        return {"input_ids": x, "attention_mask": attn, "labels": labels}

    train_dl = DataLoader(ids[:3000], batch_size=16, shuffle=True, collate_fn=collate)
    fixed_eval = [collate(ids[3000 + i:3100 + i], gen) for i in range(0, 400, 100)]
    eval_dl = DataLoader(fixed_eval, batch_size=None)

    model = BertForMaskedLM(BertConfig(vocab_size=len(vocab) + 2, hidden_size=48, num_hidden_layers=2,
                                       num_attention_heads=4, intermediate_size=96, max_position_embeddings=24,
                                       pad_token_id=PAD))
    groups = [
        {"params": [p for n, p in model.named_parameters() if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    opt = torch.optim.AdamW(groups, lr=5e-3)
    epochs = 5
    updates = epochs * math.ceil(len(train_dl) / 4)
    sched = get_scheduler("linear", opt, num_warmup_steps=20, num_training_steps=updates)
    model, opt, train_dl, eval_dl, sched = acc.prepare(model, opt, train_dl, eval_dl, sched)

    @torch.no_grad()
    def evaluate():
        model.eval()
        loss = hit = n = 0
        for b in eval_dl:
            out = model(**b)
            keep = b["labels"] != -100
            k = keep.sum().item()
            loss += out.loss.item() * k
            hit += (out.logits.argmax(-1)[keep] == b["labels"][keep]).sum().item()
            n += k
        return loss / n, hit / n

    acc.print("start: loss %.3f acc %.3f" % evaluate())
    for ep in range(epochs):
        model.train()
        tot = 0.0
        for b in train_dl:
            with acc.accumulate(model):
                loss = model(**b).loss
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
            tot += loss.item()
        acc.print(f"epoch {ep}: train {tot / len(train_dl):.3f} | eval loss %.3f acc %.3f" % evaluate())


if __name__ == "__main__":
    main()
