import csv
import io
import signal

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.manual_seed(0)
STOP = False


def on_term(signum, frame):
    global STOP
    STOP = True


signal.signal(signal.SIGTERM, on_term)


class Stream(IterableDataset):
    def __init__(self, seed):
        self.seed = seed
        self.w = torch.randn(16, 3, generator=torch.Generator().manual_seed(77))

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        while True:
            v = torch.randn(16, generator=g)
            yield v, torch.tanh(v @ self.w)


model = nn.Sequential(nn.Linear(16, 64), nn.ELU(), nn.Linear(64, 3))
optimizer = torch.optim.NAdam(model.parameters(), lr=4e-3)
held = next(iter(DataLoader(Stream(999), batch_size=300)))
sink = io.StringIO()
writer = csv.writer(sink)
writer.writerow(["step", "train", "held"])


@torch.inference_mode()
def held_loss():
    return nn.functional.mse_loss(model(held[0]), held[1]).item()


def compute(batch):
    v, target = batch
    return nn.functional.mse_loss(model(v), target)


def train_one(step, batch):
    loss = compute(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        writer.writerow([step, f"{loss.item():.5f}", f"{held_loss():.5f}"])
    return loss.item()


try:
    for step, batch in enumerate(DataLoader(Stream(1), batch_size=32), start=1):
        last = train_one(step, batch)
        if STOP or step >= 600:
            break
finally:
    print(sink.getvalue().replace("\r", ""), end="")
print(f"FINAL train {last:.4f} held {held_loss():.4f}")
