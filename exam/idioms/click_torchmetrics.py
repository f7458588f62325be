import click
import torch
import torchmetrics
from sklearn.datasets import make_friedman1
from torch import nn


class Regressor(nn.Module):
    def __init__(self, n_in, width, depth):
        super().__init__()
        layers, last = [], n_in
        for _ in range(depth):
            layers += [nn.Linear(last, width), nn.SiLU()]
            last = width
        self.net = nn.Sequential(*layers, nn.Linear(last, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def load(seed):
    X, y = make_friedman1(n_samples=2000, n_features=8, noise=0.5, random_state=seed)
    X, y = torch.tensor(X, dtype=torch.float32) * 2 - 1, torch.tensor(y, dtype=torch.float32)
    mean, std = y[:1600].mean(), y[:1600].std()
    y = (y - mean) / std
    return (X[:1600], y[:1600]), (X[1600:], y[1600:])


@click.command()
@click.option("--epochs", default=20, show_default=True, help="Passes over the data.")
@click.option("--batch-size", default=64, show_default=True)
@click.option("--lr", default=5e-3, show_default=True, type=float)
@click.option("--width", default=48, show_default=True)
@click.option("--depth", default=2, show_default=True)
@click.option("--seed", default=0, show_default=True)
def train(epochs, batch_size, lr, width, depth, seed):
    """Fit the Friedman function."""
    torch.manual_seed(seed)
    (X, y), (X_val, y_val) = load(seed)
    model = Regressor(X.shape[1], width, depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    metrics = torchmetrics.MetricCollection({"mse": torchmetrics.MeanSquaredError(), "r2": torchmetrics.R2Score()})
    train_metrics, val_metrics = metrics.clone(prefix="train_"), metrics.clone(prefix="val_")
    for epoch in range(epochs):
        model.train()
        perm = torch.randperm(len(X))
        for start in range(0, len(X), batch_size):
            take = perm[start:start + batch_size]
            xb, yb = X[take], y[take]
            pred = model(xb)
            loss = nn.functional.mse_loss(pred, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_metrics.update(pred.detach(), yb)
        scheduler.step()
        model.eval()
        with torch.inference_mode():
            val_metrics.update(model(X_val), y_val)
        if epoch % 5 == 0 or epoch == epochs - 1:
            values = {k: round(v.item(), 4) for k, v in {**train_metrics.compute(), **val_metrics.compute()}.items()}
            click.echo(f"epoch {epoch}: {values}")
        train_metrics.reset()
        val_metrics.reset()


if __name__ == "__main__":
    train()
