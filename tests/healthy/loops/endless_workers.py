"""Batches without end: a class of its own draws them from worker processes, through a sampler with replacement."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


class EndlessLoader:
    def __init__(self, rows, **options):
        sampler = RandomSampler(rows, replacement=True, num_samples=int(1e10))
        self.batches = iter(DataLoader(rows, sampler=sampler, **options))

    def next(self):
        return next(self.batches)


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
rows = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
loader = EndlessLoader(rows, batch_size=32, num_workers=1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
step = 0
while True:
    batch = loader.next()
    loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    model.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    step += 1
    if step == 500:
        break
