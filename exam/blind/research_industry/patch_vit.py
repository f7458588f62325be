"""A compact ViT on 8x8 digits: 2x2 patches, mean-pooled tokens, auxiliary ink-mass regression."""
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


@dataclass
class ViTConfig:
    patch: int = 2
    dim: int = 32
    heads: int = 4
    depth: int = 2
    mlp: int = 64
    epochs: int = 15
    batch: int = 48
    lr: float = 4e-3
    aux_weight: float = 0.2
    smoothing: float = 0.05
    seed: int = 17


def patchify(images, p):
    n, h, w = images.shape
    x = images.reshape(n, h // p, p, w // p, p).permute(0, 1, 3, 2, 4)
    return x.reshape(n, (h // p) * (w // p), p * p)


class PatchEncoder(nn.Module):
    def __init__(self, cfg, n_tokens, patch_dim):
        super().__init__()
        self.embed = nn.Linear(patch_dim, cfg.dim)
        self.pos = nn.Parameter(torch.randn(1, n_tokens, cfg.dim) * 0.3)
        layer = nn.TransformerEncoderLayer(
            d_model=cfg.dim, nhead=cfg.heads, dim_feedforward=cfg.mlp,
            dropout=0.0, activation="gelu",
        )
        self.blocks = nn.TransformerEncoder(layer, num_layers=cfg.depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(cfg.dim)

    def forward(self, tokens):
        x = self.embed(tokens * 2 - 1) + self.pos
        x = self.blocks(x)
        return self.norm(x).mean(dim=1)


class DigitViT(nn.Module):
    def __init__(self, cfg, n_tokens, patch_dim, n_classes=10):
        super().__init__()
        self.encoder = PatchEncoder(cfg, n_tokens, patch_dim)
        self.cls = nn.Linear(cfg.dim, n_classes)
        self.ink = nn.Linear(cfg.dim, 1)

    def forward(self, tokens):
        z = self.encoder(tokens)
        return self.cls(z), self.ink(z).squeeze(-1)


def warmup_cosine(step, warm, total):
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


def corrupt(images, level=0.1):
    """Additive pixel noise, clipped to the valid range."""
    return (images + level * torch.randn_like(images)).clamp(0, 1)


def make_data(seed):
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32)
    y = torch.tensor(digits.target)
    tr, te = train_test_split(np.arange(len(y)), test_size=0.3, stratify=digits.target, random_state=seed)
    return images[tr], y[tr], images[te], y[te]


@torch.no_grad()
def accuracy(model, images, y, cfg):
    model.eval()
    correct = 0
    for i in range(0, len(y), cfg.batch):
        logits, _ = model(patchify(images[i:i + cfg.batch], cfg.patch))
        correct += (logits.argmax(-1) == y[i:i + cfg.batch]).sum().item()
    return correct / len(y)


def run(cfg):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    xtr, ytr, xte, yte = make_data(cfg.seed)
    ink_mean, ink_std = xtr.mean((1, 2)).mean(), xtr.mean((1, 2)).std()
    n_tokens = (8 // cfg.patch) ** 2
    model = DigitViT(cfg, n_tokens, cfg.patch ** 2)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.01)
    total = cfg.epochs * math.ceil(len(ytr) / cfg.batch)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: warmup_cosine(s, total // 10, total))
    for epoch in range(cfg.epochs):
        model.train()
        order = torch.randperm(len(ytr), generator=gen)
        logs = {"cls": 0.0, "ink": 0.0}
        for i in range(0, len(order), cfg.batch):
            idx = order[i:i + cfg.batch]
            img = corrupt(xtr[idx])
            logits, ink = model(patchify(img, cfg.patch))
            target_ink = (img.mean((1, 2)) - ink_mean) / ink_std
            cls_loss = F.cross_entropy(logits, ytr[idx], label_smoothing=cfg.smoothing)
            ink_loss = F.mse_loss(ink, target_ink)
            loss = cls_loss + cfg.aux_weight * ink_loss
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            logs["cls"] += cls_loss.item() * len(idx)
            logs["ink"] += ink_loss.item() * len(idx)
        if epoch % 3 == 2:
            print(f"[{epoch + 1:02d}] cls {logs['cls'] / len(ytr):.3f} ink {logs['ink'] / len(ytr):.3f} "
                  f"test acc {accuracy(model, xte, yte, cfg):.4f}")
    return accuracy(model, xte, yte, cfg)


if __name__ == "__main__":
    print(f"final test accuracy: {run(ViTConfig()):.4f}")
