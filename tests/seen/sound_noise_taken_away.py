# verdict: not shown
# finds: nothing
# The target is another view of the input itself: mirrored alone, as may be meant; and the noise is drawn anew.
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 32


def scene(generator):
    y, x = np.mgrid[:SIZE, :SIZE]
    image, mask = generator.normal(0, 0.15, (3, SIZE, SIZE)), np.zeros((SIZE, SIZE), int)
    for kind in generator.integers(0, 3, generator.integers(1, 5)):
        down, right, radius = generator.integers(6, SIZE - 6), generator.integers(6, SIZE - 6), generator.integers(3, 6)
        inside = np.hypot(y - down, x - right) < radius
        image[kind][inside] += 0.8
        mask[inside] = kind
    return torch.from_numpy(image).float(), torch.from_numpy(mask)


class Scenes(Dataset):
    def __init__(self, count):
        generator = np.random.default_rng(0)
        self.rows = [scene(generator) for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        image, mask = self.rows[number]
        view = image.flip(-1) if random.random() < 0.5 else image
        return view + 0.1 * torch.randn_like(view), image


random.seed(0)
torch.manual_seed(0)
loader = DataLoader(Scenes(160), 16, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(4):
    for image, mask in loader:
        loss = nn.functional.mse_loss(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
