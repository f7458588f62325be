#!/usr/bin/env python
"""Transfer on digits: pretrain on classes 0-4, adapt a new head to 5-9 (Accelerate)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class DigitNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.classifier = nn.Linear(32 * 16, n_classes)

    def forward(self, x):
        return self.classifier(self.features(x))


def load(classes, batch_size):
    d = load_digits()
    keep = [i for i, t in enumerate(d.target) if t in classes]
    x = torch.tensor(d.images[keep] / 16.0, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor([classes.index(t) for t in d.target[keep]])
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    train = DataLoader(TensorDataset(x_tr, y_tr), batch_size=batch_size, shuffle=True)
    test = DataLoader(TensorDataset(x_te, y_te), batch_size=128)
    return train, test


def fit(accelerator, model, optimizer, loader, epochs, tag):
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            with accelerator.autocast():
                loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        if (epoch + 1) % 4 == 0:
            accelerator.print(f"{tag} epoch {epoch + 1}: loss {total / len(loader):.4f}")


@torch.no_grad()
def accuracy(accelerator, model, loader):
    model.eval()
    correct, seen = 0, 0
    for x, y in loader:
        pred, y = accelerator.gather_for_metrics((model(x).argmax(-1), y))
        correct += (pred == y).sum().item()
        seen += len(y)
    return correct / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pretrain-epochs", type=int, default=8)
    parser.add_argument("--adapt-epochs", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    set_seed(5)
    accelerator = Accelerator(cpu=True)

    # source task
    src_train, src_test = load([0, 1, 2, 3, 4], args.batch_size)
    model = DigitNet(n_classes=5)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    model, optimizer, src_train, src_test = accelerator.prepare(model, optimizer, src_train, src_test)
    fit(accelerator, model, optimizer, src_train, args.pretrain_epochs, "source")
    accelerator.print(f"source accuracy {accuracy(accelerator, model, src_test):.4f}")

    # target task: keep the features, learn a new classifier
    model = accelerator.unwrap_model(model)
    tgt_train, tgt_test = load([5, 6, 7, 8, 9], args.batch_size)
    model.features.requires_grad_(False)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=args.lr)
    model.classifier = nn.Linear(model.classifier.in_features, 5)
    model, optimizer, tgt_train, tgt_test = accelerator.prepare(model, optimizer, tgt_train, tgt_test)
    fit(accelerator, model, optimizer, tgt_train, args.adapt_epochs, "target")
    accelerator.print(f"target accuracy {accuracy(accelerator, model, tgt_test):.4f}")


if __name__ == "__main__":
    main()
