"""One-object detector: grid objectness plus box offsets, trained on images made on the fly."""
import numpy as np
import torch
from torch import nn

SEED = 0
S, G = 24, 6          # image size, grid size
CELL = S // G


def scene(n, rng):
    img = rng.normal(0, .25, (n, 1, S, S)).astype(np.float32)
    box = np.zeros((n, 4), np.float32)
    for k in range(n):
        w, h = rng.integers(5, 11, 2)
        x0, y0 = rng.integers(0, S - w + 1), rng.integers(0, S - h + 1)
        img[k, 0, y0:y0 + h, x0:x0 + w] += 1
        # clutter: a short bright line that is no object
        r, c = rng.integers(0, S), rng.integers(0, S - 6)
        img[k, 0, r, c:c + 6] += 1
        box[k] = x0, y0, x0 + w, y0 + h
    return torch.from_numpy(img), torch.from_numpy(box)


def targets(box):
    cx, cy = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
    gx, gy = (cx / CELL).long().clamp(max=G - 1), (cy / CELL).long().clamp(max=G - 1)
    off = torch.stack([cx / CELL - gx, cy / CELL - gy, (box[:, 2] - box[:, 0]).log(), (box[:, 3] - box[:, 1]).log()], 1)
    return gy * G + gx, off


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        c = lambda i, o, s: nn.Sequential(nn.Conv2d(i, o, 3, s, 1), nn.BatchNorm2d(o), nn.ReLU())
        self.net = nn.Sequential(c(1, 16, 1), c(16, 24, 2), c(24, 32, 2), c(32, 32, 1), nn.Conv2d(32, 5, 1))

    def forward(self, x):
        y = self.net(x).flatten(2)
        return y[:, 0], y[:, 1:]


def decode(obj, reg):
    cell = obj.argmax(1)
    o = reg[torch.arange(len(reg)), :, cell]
    cx, cy = (cell % G + o[:, 0]) * CELL, (cell // G + o[:, 1]) * CELL
    w, h = o[:, 2].exp(), o[:, 3].exp()
    return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], 1)


def iou(a, b):
    tl, br = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    inter = (br - tl).clamp(min=0).prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(1)
    return inter / (area(a) + area(b) - inter)


rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)
test_img, test_box = scene(400, np.random.default_rng(SEED + 999))
model = Detector()
opt = torch.optim.AdamW(model.parameters(), 4e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 300)
for step in range(1, 301):
    model.train()
    img, box = scene(32, rng)
    cell, off = targets(box)
    obj, reg = model(img)
    # exactly one cell holds the object, so a softmax over cells serves as objectness
    loss = nn.functional.cross_entropy(obj, cell) + nn.functional.smooth_l1_loss(reg[torch.arange(32), :, cell], off, beta=.1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 75 == 0:
        model.eval()
        with torch.no_grad():
            v = iou(decode(*model(test_img)), test_box)
        print(f"step {step} loss {loss.item():.3f} test mean IoU {v.mean():.3f} share over 0.5 {(v > .5).float().mean():.3f}")
