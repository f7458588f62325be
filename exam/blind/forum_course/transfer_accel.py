"""Tutorial 4: transfer learning with Accelerate.

1. train a small CNN on the digits 0-4
2. keep the convolutional part fixed, give the network a new head
3. train the head on the digits 5-9
"""
import argparse
import json
import os
import tempfile

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

config = {
    "seed": 21,
    "batch_size": 32,
    "source": {"classes": [0, 1, 2, 3, 4], "epochs": 8, "lr": 2e-3},
    "target": {"classes": [5, 6, 7, 8, 9], "epochs": 12, "lr": 5e-3},
}


class SmallCNN(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(48 * 16, 64), nn.ReLU(),
        )
        self.head = nn.Linear(64, n_classes)

    def forward(self, x):
        return self.head(self.features(x))


def get_loaders(classes, batch_size, seed):
    data = load_digits()
    keep = torch.tensor([int(t) in classes for t in data.target])
    x = torch.tensor(data.images, dtype=torch.float32)[keep].unsqueeze(1)
    y = torch.tensor(data.target)[keep] - min(classes)
    x = (x - 4.88) / 6.02
    idx_tr, idx_te = train_test_split(range(len(y)), test_size=0.25, stratify=y, random_state=seed)
    train = DataLoader(TensorDataset(x[idx_tr], y[idx_tr]), batch_size=batch_size, shuffle=True)
    test = DataLoader(TensorDataset(x[idx_te], y[idx_te]), batch_size=128)
    return train, test


def evaluate(accelerator, model, loader):
    model.eval()
    preds, refs = [], []
    for x, y in loader:
        with torch.no_grad():
            out = model(x).argmax(-1)
        out, y = accelerator.gather_for_metrics((out, y))
        preds.append(out)
        refs.append(y)
    return (torch.cat(preds) == torch.cat(refs)).float().mean().item()


def fit(accelerator, model, optimizer, train_loader, test_loader, epochs, tag):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))
    model, optimizer, train_loader, test_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, test_loader, scheduler)
    criterion = nn.CrossEntropyLoss()
    history = []
    for epoch in range(epochs):
        model.train()
        total, seen = 0.0, 0
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(y)
            seen += len(y)
        acc = evaluate(accelerator, model, test_loader)
        history.append({"epoch": epoch, "loss": total / seen, "acc": acc})
        accelerator.print(f"[{tag}] epoch {epoch:2d} loss {total / seen:.4f} acc {acc:.4f}")
    return accelerator.unwrap_model(model), history


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", default=tempfile.mkdtemp(prefix="tut4_"))
    args = parser.parse_args()
    set_seed(config["seed"])
    accelerator = Accelerator(cpu=True)

    # step 1
    src = config["source"]
    model = SmallCNN(len(src["classes"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=src["lr"])
    loaders = get_loaders(src["classes"], config["batch_size"], config["seed"])
    model, _ = fit(accelerator, model, optimizer, *loaders, src["epochs"], "source")
    path = os.path.join(args.workdir, "source.pt")
    accelerator.save(model.state_dict(), path)

    # step 2
    tgt = config["target"]
    accelerator.free_memory()
    model = SmallCNN(len(src["classes"]))
    model.load_state_dict(torch.load(path))
    optimizer = torch.optim.AdamW(model.parameters(), lr=tgt["lr"], weight_decay=0.0)
    for p in model.features.parameters():
        p.requires_grad_(False)
    model.head = nn.Linear(model.head.in_features, len(tgt["classes"]))
    n_train = sum(p.numel() for p in model.parameters() if p.requires_grad)
    accelerator.print(f"trainable parameters: {n_train}")

    # step 3
    loaders = get_loaders(tgt["classes"], config["batch_size"], config["seed"])
    model, history = fit(accelerator, model, optimizer, *loaders, tgt["epochs"], "target")
    with open(os.path.join(args.workdir, "history.json"), "w") as f:
        json.dump(history, f, indent=1)
    accelerator.print(f"FINAL target_acc={history[-1]['acc']:.4f} loss={history[-1]['loss']:.4f}")


if __name__ == "__main__":
    main()
