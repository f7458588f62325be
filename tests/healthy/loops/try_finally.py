"""A loop in a try block: an interrupt saves the weights, other errors are logged, the log is closed in any case."""

import io
import logging

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("train")


def train(model, loader, epochs, lr):
    history = io.StringIO()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    global_step = 0
    try:
        for epoch in range(epochs):
            for inputs, labels in loader:
                optimizer.zero_grad()
                loss = criterion(model(inputs), labels)
                loss.backward()
                optimizer.step()
                global_step += 1
                history.write(f"{global_step},{loss.item()}\n")
            log.info("epoch %d loss %.4f", epoch, loss.item())
    except KeyboardInterrupt:
        log.info("interrupted, saving")
        torch.save(model.state_dict(), io.BytesIO())
    except Exception:
        log.exception("training failed at step %d", global_step)
        raise
    finally:
        written = len(history.getvalue().splitlines())
        history.close()
        print("rows of history", written)
    return model


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60, shuffle=True)
    model = train(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), loader, epochs=8, lr=3e-3)
    with torch.no_grad():
        print("accuracy", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())


if __name__ == "__main__":
    main()
