"""Notebook 6 - Representation learning.

Part A trains an encoder on a large labelled source set and stores a checkpoint.
Part B loads the encoder, freezes it and fits a linear head on a handful of
labelled examples per class ("linear probe").
"""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "emb_dim": 16,
    "pretrain": {"epochs": 12, "lr": 2e-3, "batch_size": 64},
    "probe": {"epochs": 150, "lr": 2e-2, "shots": 5},
}


class Encoder(nn.Module):
    def __init__(self, emb_dim):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 2 * 2, emb_dim)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return torch.tanh(self.fc(x.flatten(1)))


class Pretrainer(nn.Module):
    def __init__(self, emb_dim, n_classes):
        super().__init__()
        self.encoder = Encoder(emb_dim)
        self.head = nn.Linear(emb_dim, n_classes)

    def forward(self, x):
        return self.head(self.encoder(x))


class LinearProbe(nn.Module):
    def __init__(self, emb_dim, n_classes):
        super().__init__()
        self.backbone = Encoder(emb_dim)
        self.classifier = nn.Linear(emb_dim, n_classes)

    def forward(self, x):
        return self.classifier(self.backbone(x))


def get_data(seed):
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target)
    perm = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    images, labels = images[perm], labels[perm]
    source = (images[:1000], labels[:1000])
    target = (images[1000:], labels[1000:])
    return source, target


def pretrain(source, path):
    cfg = CONFIG["pretrain"]
    model = Pretrainer(CONFIG["emb_dim"], 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    loader = DataLoader(TensorDataset(*source), batch_size=cfg["batch_size"], shuffle=True)
    for epoch in range(cfg["epochs"]):
        model.train()
        correct = 0
        for x, y in loader:
            x = x + 0.1 * torch.randn_like(x)
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (logits.argmax(1) == y).sum().item()
        print(f"[pretrain] epoch {epoch + 1:02d} train acc {correct / len(source[1]):.3f}")
    torch.save({"epoch": cfg["epochs"], "state_dict": model.state_dict()}, path)


def build_probe(path):
    probe = LinearProbe(CONFIG["emb_dim"], 10)
    ckpt = torch.load(path, map_location="cpu")
    # the source head is not needed here, hence strict=False
    probe.load_state_dict(ckpt["state_dict"], strict=False)
    print(f"loaded encoder from epoch {ckpt['epoch']}")
    for param in probe.backbone.parameters():
        param.requires_grad = False
    return probe


def few_shot_split(images, labels, shots):
    idx = torch.cat([(labels == c).nonzero().flatten()[:shots] for c in range(10)])
    mask = torch.ones(len(labels), dtype=torch.bool)
    mask[idx] = False
    return (images[idx], labels[idx]), (images[mask], labels[mask])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ckpt", default=os.path.join(tempfile.gettempdir(), "encoder_nb6.pt"))
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)

    source, target = get_data(args.seed)
    pretrain(source, args.ckpt)

    cfg = CONFIG["probe"]
    (x_few, y_few), (x_test, y_test) = few_shot_split(*target, cfg["shots"])
    probe = build_probe(args.ckpt)
    optimizer = torch.optim.Adam(probe.classifier.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        probe.train()
        loss = F.cross_entropy(probe(x_few), y_few)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 50 == 0:
            probe.eval()
            with torch.no_grad():
                acc = (probe(x_test).argmax(1) == y_test).float().mean().item()
            print(f"[probe] epoch {epoch + 1:03d} loss {loss.item():.4f} test acc {acc:.4f}")
    print(f"FINAL test_acc={acc:.4f} with {cfg['shots']} shots per class")


if __name__ == "__main__":
    main()
