import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


class ProgressMeter:
    def __init__(self, num_batches, meters, prefix=""):
        self.num_batches, self.meters, self.prefix = num_batches, meters, prefix

    def display(self, batch):
        print("\t".join([f"{self.prefix}[{batch}/{self.num_batches}]"] + [str(m) for m in self.meters]))


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum().item() * 100.0 / target.size(0) for k in topk]


def to_device(batch):
    images, target = batch
    return images.to(device, non_blocking=True), target.to(device, non_blocking=True)


def run(loader, model, criterion, optimizer=None, epoch=0):
    training = optimizer is not None
    model.train(training)
    batch_time, losses = AverageMeter("Time", ":6.3f"), AverageMeter("Loss", ":.4f")
    top1, top2 = AverageMeter("Acc@1", ":6.2f"), AverageMeter("Acc@2", ":6.2f")
    progress = ProgressMeter(len(loader), [batch_time, losses, top1, top2], f"{'Epoch' if training else 'Test'}: [{epoch}]")
    end = time.time()
    with torch.set_grad_enabled(training):
        for i, (images, target) in enumerate(map(to_device, loader)):
            output = model(images)
            loss = criterion(output, target)
            acc1, acc2 = accuracy(output, target, topk=(1, 2))
            losses.update(loss.item(), images.size(0))
            top1.update(acc1, images.size(0))
            top2.update(acc2, images.size(0))
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            batch_time.update(time.time() - end)
            end = time.time()
            if i % 20 == 0:
                progress.display(i)
    return losses.avg, top1.avg


def stripes(n, rng):
    """Gratings in five directions."""
    kind = rng.integers(1, 6, n)
    angle, phase = kind * np.pi / 5, rng.uniform(0, 2 * np.pi, n)
    yy, xx = np.mgrid[0:10, 0:10]
    wave = np.sin(1.3 * (xx[None] * np.cos(angle)[:, None, None] + yy[None] * np.sin(angle)[:, None, None]) + phase[:, None, None])
    images = torch.tensor(wave + 0.3 * rng.normal(size=wave.shape), dtype=torch.float32).unsqueeze(1)
    return TensorDataset(images, torch.tensor(kind) - 1)


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    train_loader = DataLoader(stripes(800, rng), batch_size=32, shuffle=True)
    val_loader = DataLoader(stripes(300, rng), batch_size=100)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 5), nn.BatchNorm2d(12), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(48, 5)
    ).to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(5):
        train_loss, train_acc = run(train_loader, model, criterion, optimizer, epoch)
        val_loss, val_acc = run(val_loader, model, criterion, epoch=epoch)
        print(f" * epoch {epoch} train {train_loss:.4f} ({train_acc:.1f}) val {val_loss:.4f} ({val_acc:.1f})")


if __name__ == "__main__":
    main()
