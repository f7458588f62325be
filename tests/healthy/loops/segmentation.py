"""Segmentation of discs in noisy synthetic pictures: a small U-Net, BCE plus Dice, IoU in the evaluation."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_discs(count, size=24, seed=0):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre, radius = torch.randint(6, size - 6, (count, 2, 1, 1), generator=g), torch.randint(3, 6, (count, 1, 1), generator=g)
    masks = ((yy - centre[:, 0]) ** 2 + (xx - centre[:, 1]) ** 2 <= radius**2).float()[:, None]
    return masks + 0.5 * torch.randn(masks.shape, generator=g), masks


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = block(1, 8)
        self.bottom = block(8, 16)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = block(16, 8)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        d = self.down(x)
        u = self.up(self.bottom(self.pool(d)))
        return self.head(self.last(torch.cat([d, u], dim=1)))


def dice_loss(logits, target):
    p = torch.sigmoid(logits)
    return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)


torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(*make_discs(320)), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(*make_discs(64, seed=1)), batch_size=16)
model, bce = UNet(), nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for images, masks in train_loader:
        optimizer.zero_grad(set_to_none=True)
        outputs = model(images)
        loss = bce(outputs, masks) + dice_loss(outputs, masks)
        loss.backward()
        optimizer.step()
    model.eval()
    inter, union = 0, 0
    with torch.no_grad():
        for images, masks in val_loader:
            pred = model(images) > 0
            inter, union = inter + (pred & masks.bool()).sum().item(), union + (pred | masks.bool()).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} IoU {inter / union:.3f}")
