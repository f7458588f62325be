"""train.py - ring / square segmentation with joint augmentation and SWA.

    python shapes_unet_swa.py --epochs 12 --swa-start 8
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, Dataset

CLASSES = ("background", "disc", "square")


class ShapeDataset(Dataset):
    """Images are rendered on first access and then kept in memory."""

    def __init__(self, n, seed, size=20, augment=False):
        self.n, self.seed, self.size, self.augment = n, seed, size, augment
        self._cache = {}
        self._aug = np.random.default_rng(seed + 999)

    def __len__(self):
        return self.n

    def _render(self, i):
        rng = np.random.default_rng((self.seed, i))
        yy, xx = np.mgrid[:self.size, :self.size]
        mask = np.zeros((self.size, self.size), dtype=np.int64)
        for _ in range(2):
            cy, cx, r = rng.integers(4, self.size - 4, 2).tolist() + [int(rng.integers(2, 5))]
            if rng.random() < 0.5:
                mask[(yy - cy) ** 2 + (xx - cx) ** 2 <= r * r + 1] = 1
            else:
                mask[(abs(yy - cy) < r) & (abs(xx - cx) < r)] = 2
        level = np.array([0.0, 0.7, 1.4])[mask]
        img = level * rng.uniform(0.9, 1.1) + 0.25 * rng.standard_normal(mask.shape)
        return torch.from_numpy(img.astype(np.float32))[None], torch.from_numpy(mask)

    def __getitem__(self, i):
        if i not in self._cache:
            self._cache[i] = self._render(i)
        img, mask = self._cache[i]
        if self.augment:
            k, flip = int(self._aug.integers(4)), self._aug.random() < 0.5
            img, mask = torch.rot90(img, k, (1, 2)), torch.rot90(mask, k, (0, 1))
            if flip:
                img, mask = img.flip(2), mask.flip(1)
            img = img + 0.05 * self._aug.standard_normal()
        return img, mask


class UNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
        self.enc1, self.enc2 = block(1, c), block(c, 2 * c)
        self.mid = block(2 * c, 2 * c)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.dec = block(2 * c, c)
        self.head = nn.Conv2d(c, len(CLASSES), 1)

    def forward(self, x):
        s = self.enc1(x)
        h = self.mid(self.enc2(F.max_pool2d(s, 2)))
        return self.head(self.dec(torch.cat([s, self.up(h)], 1)))


def dice_ce(logits, target, eps=1.0):
    probs = logits.softmax(1)
    onehot = F.one_hot(target, len(CLASSES)).permute(0, 3, 1, 2).float()
    inter = (probs * onehot).sum((0, 2, 3))
    dice = (2 * inter + eps) / (probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + eps)
    return F.cross_entropy(logits, target) + (1 - dice[1:].mean())


@torch.no_grad()
def class_iou(model, loader):
    model.eval()
    inter, union = torch.zeros(len(CLASSES)), torch.zeros(len(CLASSES))
    for x, y in loader:
        p = model(x).argmax(1)
        for c in range(len(CLASSES)):
            inter[c] += ((p == c) & (y == c)).sum()
            union[c] += ((p == c) | (y == c)).sum()
    return inter / union


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--swa-start", type=int, default=8)
    ap.add_argument("--lr", type=float, default=5e-3)
    a = ap.parse_args()
    torch.manual_seed(0)

    train = DataLoader(ShapeDataset(480, seed=1, augment=True), batch_size=24, shuffle=True)
    val = DataLoader(ShapeDataset(160, seed=2), batch_size=40)
    model = UNet()
    swa_model = AveragedModel(model)
    opt = torch.optim.Adam(model.parameters(), lr=a.lr)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=a.swa_start)
    swa_sched = SWALR(opt, swa_lr=2e-3, anneal_epochs=2)
    for epoch in range(a.epochs):
        model.train()
        tot = 0.0
        for x, y in train:
            loss = dice_ce(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        if epoch >= a.swa_start:
            swa_model.update_parameters(model)
            swa_sched.step()
        else:
            cosine.step()
        print(f"epoch {epoch + 1:2d} loss {tot / len(train):.4f}")
    update_bn(train, swa_model)
    iou = class_iou(swa_model, val)
    print("IoU per class:", {c: round(v.item(), 3) for c, v in zip(CLASSES, iou)})
    print(f"mean foreground IoU {iou[1:].mean():.4f}")


if __name__ == "__main__":
    main()
