"""The schedule is stepped after the optimizer."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    train = TensorDataset(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y))
    loader = DataLoader(train, batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 80), nn.GELU(), nn.Linear(80, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    steps = 6 * len(loader)
    scheduler = torch.optim.lr_scheduler.LinearLR(
        optimizer, start_factor=1.0, end_factor=0.05, total_iters=steps
    )
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(6):
        for x, target in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), target)
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
