# binary segmentation of blobs, mini U-Net, BCE + dice
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    """made on the fly, each index has its own seed so that the pictures never change"""

    def __init__(self, n, offset):
        self.items = [self.paint(np.random.default_rng(offset + i)) for i in range(n)]

    @staticmethod
    def paint(g, s=24):
        yy, xx = np.mgrid[:s, :s]
        mask = np.zeros((s, s), bool)
        for _ in range(g.integers(1, 3)):
            cy, cx = g.integers(4, s - 4, 2)
            a, b = g.uniform(2, 4, 2)
            mask |= ((yy - cy) / a) ** 2 + ((xx - cx) / b) ** 2 <= 1
        shade = np.linspace(-1, 1, s)[None] * g.normal() * 0.5
        img = shade + 1.0 * mask + g.normal(0, 0.5, (s, s))
        return (torch.tensor(img[None], dtype=torch.float32), torch.tensor(mask[None], dtype=torch.float32))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.d1, self.d2, self.mid = conv(1, c), conv(c, 2 * c), conv(2 * c, 2 * c)
        self.u2, self.u1 = conv(4 * c, c), conv(2 * c, c)
        self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        m = self.mid(self.pool(b))
        x = self.u2(torch.cat([self.up(m), b], 1))
        x = self.u1(torch.cat([self.up(x), a], 1))
        return self.out(x)


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum((1, 2, 3))
    return 1 - ((2 * inter + eps) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + eps)).mean()


torch.manual_seed(0)
train, val = DataLoader(Blobs(320, 0), 16, shuffle=True), DataLoader(Blobs(80, 10_000), 40)
model = UNet()
opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
bce = nn.BCEWithLogitsLoss()

share = torch.cat([m for _, m in val]).mean().item()
print(f"foreground share: {share:.3f}  (accuracy of an all-background answer {1 - share:.3f})")

for epoch in range(6):
    model.train()
    run = 0.0
    for x, m in train:
        logits = model(x)
        loss = bce(logits, m) + dice_loss(logits, m)
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item()
    model.eval()
    inter = union = right = count = 0
    with torch.no_grad():
        for x, m in val:
            p = model(x) > 0
            inter += (p & m.bool()).sum().item()
            union += (p | m.bool()).sum().item()
            right += (p == m.bool()).sum().item()
            count += m.numel()
    print(f"epoch {epoch}: loss {run / len(train):.4f} val IoU {inter / union:.4f} val pixel acc {right / count:.4f}")
