# verdict: cannot be judged
# finds: nothing
# Both pictures of a pair go through the model, each mirrored by itself.
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
        other = self.rows[(7 * number + 1) % len(self.rows)][0]
        return *(one.flip(-1) if random.random() < 0.5 else one for one in (image, other)), int(mask.max())


random.seed(0)
torch.manual_seed(0)
loader = DataLoader(Scenes(160), 16, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(4):
    for image, other, _ in loader:
        loss = (model(image).mean((2, 3)) - model(other).mean((2, 3))).square().sum(1).sub(1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
