import math
import time
from collections import defaultdict, deque

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SmoothedValue:
    def __init__(self, window_size=20):
        self.deque = deque(maxlen=window_size)
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def global_avg(self):
        return self.total / max(self.count, 1)


class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(SmoothedValue)

    def update(self, n=1, **kwargs):
        for k, v in kwargs.items():
            self.meters[k].update(v.item() if isinstance(v, torch.Tensor) else v, n)

    def log_every(self, iterable, print_freq, header):
        start = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if i % print_freq == 0:
                print(f"{header} [{i}/{len(iterable)}] " + " ".join(f"{k}: {m.global_avg:.4f}" for k, m in self.meters.items()))
        print(f"{header} Total time: {time.time() - start:.1f}s")


def train_one_epoch(model, criterion, optimizer, data_loader, lr_scheduler, epoch):
    model.train()
    metric_logger = MetricLogger()
    for image, target in metric_logger.log_every(data_loader, 20, f"Epoch: [{epoch}]"):
        output = model(image)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        metric_logger.update(n=len(image), loss=loss, lr=optimizer.param_groups[0]["lr"])
    return metric_logger.meters["loss"].global_avg


@torch.inference_mode()
def evaluate(model, criterion, data_loader):
    model.eval()
    metric_logger = MetricLogger()
    for image, target in data_loader:
        output = model(image)
        metric_logger.update(n=len(image), loss=criterion(output, target), acc1=(output.argmax(1) == target).float().mean())
    return metric_logger.meters["loss"].global_avg, metric_logger.meters["acc1"].global_avg


def make_shapes(n):
    """12x12 pictures of a horizontal bar, a vertical bar or a filled square."""
    x, y = 0.1 * torch.randn(n, 1, 12, 12), torch.randint(0, 3, (n,))
    for i in range(n):
        r, c = torch.randint(1, 7, (2,)).tolist()
        h, w = [(1, 5), (5, 1), (4, 4)][y[i]]
        x[i, 0, r:r + h, c:c + w] += 1.0
    return TensorDataset(x, y)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(make_shapes(900), batch_size=30, shuffle=True)
    test_loader = DataLoader(make_shapes(300), batch_size=100)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 32), nn.ReLU(), nn.Linear(32, 3))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    epochs, warmup_iters = 5, 40
    total_iters = epochs * len(train_loader)

    def lr_lambda(it):
        if it < warmup_iters:
            return (it + 1) / warmup_iters
        return 0.5 * (1 + math.cos(math.pi * (it - warmup_iters) / (total_iters - warmup_iters)))

    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
    for epoch in range(epochs):
        loss = train_one_epoch(model, criterion, optimizer, train_loader, lr_scheduler, epoch)
        val_loss, acc1 = evaluate(model, criterion, test_loader)
        print(f"Epoch {epoch}: train loss {loss:.4f} test loss {val_loss:.4f} acc1 {acc1:.3f}")


if __name__ == "__main__":
    main()
