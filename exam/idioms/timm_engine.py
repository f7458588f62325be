""" Trimmed copy of the shape of timm's train.py on 8x8 digits """
import copy
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val, self.sum, self.count = val, self.sum + val * n, self.count + n
        self.avg = self.sum / self.count


class ModelEmaV2(nn.Module):
    def __init__(self, model, decay=0.95):
        super().__init__()
        self.module, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            if ema_v.dtype.is_floating_point:
                ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)
            else:
                ema_v.copy_(model_v)


class Mixup:
    def __init__(self, mixup_alpha=0.2, label_smoothing=0.1, num_classes=10):
        self.beta, self.smoothing, self.num_classes = torch.distributions.Beta(mixup_alpha, mixup_alpha), label_smoothing, num_classes

    def __call__(self, x, target):
        lam = self.beta.sample().item()
        soft = F.one_hot(target, self.num_classes).float() * (1 - self.smoothing) + self.smoothing / self.num_classes
        return x * lam + x.flip(0) * (1 - lam), soft * lam + soft.flip(0) * (1 - lam)


class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x, target):
        return torch.sum(-target * F.log_softmax(x, dim=-1), dim=-1).mean()


def convnet():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
                         nn.Flatten(), nn.Linear(128, 10))


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, lr_scheduler, mixup_fn, model_ema):
    losses_m = AverageMeter()
    model.train()
    num_updates = epoch * len(loader)
    for batch_idx, (input, target) in enumerate(loader):
        input, target = mixup_fn(input, target)
        output = model(input)
        loss = loss_fn(output, target)
        losses_m.update(loss.item(), input.size(0))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model_ema.update(model)
        num_updates += 1
        lr_scheduler.step()
    return losses_m.avg


def validate(model, loader, loss_fn):
    top1_m, losses_m = AverageMeter(), AverageMeter()
    model.eval()
    with torch.no_grad():
        for input, target in loader:
            output = model(input)
            losses_m.update(loss_fn(output, target).item(), input.size(0))
            top1_m.update((output.argmax(1) == target).float().mean().item(), input.size(0))
    return losses_m.avg, top1_m.avg


def main(epochs=8):
    torch.manual_seed(42)
    d = load_digits()
    ds = TensorDataset(torch.tensor(d.images[:, None] / 8 - 1, dtype=torch.float32), torch.tensor(d.target))
    train_ds, val_ds = random_split(ds, [1437, 360])
    loader_train, loader_eval = DataLoader(train_ds, batch_size=32, shuffle=True, drop_last=True), DataLoader(val_ds, batch_size=120)
    model = convnet()
    model_ema = ModelEmaV2(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.02)
    total, warmup = epochs * len(loader_train), 20
    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: (s + 1) / warmup if s < warmup else 0.5 * (1 + math.cos(math.pi * (s - warmup) / (total - warmup))))
    for epoch in range(epochs):
        tr = train_one_epoch(epoch, model, loader_train, optimizer, SoftTargetCrossEntropy(), lr_scheduler, Mixup(), model_ema)
        ema_loss, ema_top1 = validate(model_ema.module, loader_eval, nn.CrossEntropyLoss())
        print(f"Epoch {epoch} train loss {tr:.4f} EMA eval loss {ema_loss:.4f} top1 {ema_top1:.4f}")


if __name__ == "__main__":
    main()
