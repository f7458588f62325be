"""train.py - segment bright blobs and bars from cluttered 24x24 patches."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SIZE = 24


def draw(rng):
    yy, xx = np.mgrid[:SIZE, :SIZE]
    mask = np.zeros((SIZE, SIZE), dtype=np.float32)
    for _ in range(rng.integers(1, 3)):
        cy, cx = rng.integers(5, SIZE - 5, size=2)
        if rng.random() < 0.5:
            mask[(yy - cy) ** 2 + (xx - cx) ** 2 <= rng.integers(3, 5) ** 2] = 1
        else:
            h, w = rng.integers(2, 5, size=2)
            mask[(abs(yy - cy) <= h) & (abs(xx - cx) <= w)] = 1
    img = 0.9 * mask * rng.uniform(0.8, 1.2) + 0.35 * rng.standard_normal((SIZE, SIZE))
    img += 0.3 * np.sin(xx / rng.uniform(3, 6) + rng.uniform(0, 6))
    return img.astype(np.float32), mask


class Compose:
    def __init__(self, *ops):
        self.ops = ops

    def __call__(self, t):
        for op in self.ops:
            t = op(t)
        return t


class RandomRotate90:
    def __call__(self, t):
        return torch.rot90(t, random.randint(0, 3), dims=(-2, -1))


class RandomFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, t):
        return torch.flip(t, dims=(-1,)) if random.random() < self.p else t


class BlobDataset(Dataset):
    def __init__(self, n, seed, transform=None):
        rng = np.random.default_rng(seed)
        pairs = [draw(rng) for _ in range(n)]
        self.images = torch.from_numpy(np.stack([p[0] for p in pairs])).unsqueeze(1)
        self.masks = torch.from_numpy(np.stack([p[1] for p in pairs])).unsqueeze(1)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img, mask = self.images[i], self.masks[i]
        if self.transform is not None:
            img = self.transform(img)
        return img, mask


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class MiniUNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.d1 = conv_block(1, c)
        self.d2 = nn.Sequential(nn.MaxPool2d(2), conv_block(c, 2 * c), conv_block(2 * c, 2 * c))
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.u1 = conv_block(3 * c, c)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(a)
        return self.out(self.u1(torch.cat([a, self.up(b)], dim=1)))


def soft_dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum(dim=(1, 2, 3))
    return 1 - ((2 * inter + eps) / (p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + eps)).mean()


@torch.no_grad()
def mean_iou(model, loader):
    model.eval()
    scores = []
    for img, mask in loader:
        pred = model(img) > 0
        gt = mask > 0.5
        inter = (pred & gt).sum(dim=(1, 2, 3)).float()
        union = (pred | gt).sum(dim=(1, 2, 3)).float()
        scores.append(inter / union.clamp(min=1))
    return torch.cat(scores).mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--seed", type=int, default=0)
    cfg = p.parse_args()
    random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)

    augment = Compose(RandomRotate90(), RandomFlip())
    train = DataLoader(BlobDataset(500, 1, augment), batch_size=25, shuffle=True)
    val = DataLoader(BlobDataset(200, 2), batch_size=50)
    model = MiniUNet()
    bce = nn.BCEWithLogitsLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for img, mask in train:
            logits = model(img)
            loss = bce(logits, mask) + soft_dice_loss(logits, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train):.4f}")
    print(f"validation IoU {mean_iou(model, val):.4f}")


if __name__ == "__main__":
    main()
