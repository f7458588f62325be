"""Wine through an MLP, inside main(), with arguments."""

import argparse

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def get_loaders(batch_size):
    x, y = load_wine(return_X_y=True)
    x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=42)
    scaler = StandardScaler()
    x_train, x_val = scaler.fit_transform(x_train), scaler.transform(x_val)
    train = TensorDataset(torch.from_numpy(x_train).float(), torch.from_numpy(y_train).long())
    val = TensorDataset(torch.from_numpy(x_val).float(), torch.from_numpy(y_val).long())
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(val, batch_size=batch_size)


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(42)
    train_loader, val_loader = get_loaders(args.batch_size)
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    for epoch in range(1, args.epochs + 1):
        loss = train_epoch(model, train_loader, criterion, optimizer)
        print(f"{epoch:2d} loss {loss:.4f} accuracy {evaluate(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
