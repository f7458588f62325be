from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


@dataclass
class TrainConfig:
    batch_size: int = 32
    epochs: int = 4
    max_lr: float = 0.1
    momentum: float = 0.9
    hidden: int = 64
    shuffle: bool = True
    seed: int = 2024


class Loader:
    """Batches from two tensors that already lie in memory."""

    def __init__(self, x, y, batch_size, shuffle=False):
        self.x, self.y = x, y
        self.batch_size, self.shuffle = batch_size, shuffle

    def __len__(self):
        return (len(self.x) + self.batch_size - 1) // self.batch_size

    def __iter__(self):
        order = torch.randperm(len(self.x)) if self.shuffle else torch.arange(len(self.x))
        for i in range(len(self)):
            rows = order[i * self.batch_size:(i + 1) * self.batch_size]
            yield self.x[rows], self.y[rows]


def get_data(cfg: TrainConfig):
    d = load_digits()
    x, y = torch.tensor(d.data / 16.0 - 0.3, dtype=torch.float32), torch.tensor(d.target)
    test_rows = torch.cat([torch.where(y == c)[0][::5] for c in range(10)])
    is_test = torch.zeros(len(y), dtype=torch.bool)
    is_test[test_rows] = True
    train_rows = torch.where(~is_test)[0]
    train_rows = train_rows[torch.argsort(y[train_rows], stable=True)]  # class by class, as in the folders on disk
    train = Loader(x[train_rows], y[train_rows], cfg.batch_size, shuffle=cfg.shuffle)
    test = Loader(x[test_rows], y[test_rows], 100)
    return train, test


def main(cfg: TrainConfig):
    torch.manual_seed(cfg.seed)
    train, test = get_data(cfg)
    model = nn.Sequential(nn.Linear(64, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, 10))
    opt = torch.optim.SGD(model.parameters(), lr=cfg.max_lr, momentum=cfg.momentum)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=cfg.max_lr, epochs=cfg.epochs, steps_per_epoch=len(train))

    for epoch in range(cfg.epochs):
        total = 0.0
        for xb, yb in train:
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        with torch.no_grad():
            outs = [(model(xb), yb) for xb, yb in test]
        logits, target = torch.cat([o[0] for o in outs]), torch.cat([o[1] for o in outs])
        acc = (logits.argmax(1) == target).float().mean().item()
        print(f"epoch {epoch} train {total / len(train):.4f} test {F.cross_entropy(logits, target).item():.4f} acc {acc:.4f}")


if __name__ == "__main__":
    main(TrainConfig())
