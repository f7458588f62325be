"""Accelerate: prepare, backward, clip_grad_norm_, gather_for_metrics."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(42)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    train_dataloader = DataLoader(TensorDataset(X[:1400], y[:1400]), shuffle=True, batch_size=64)
    eval_dataloader = DataLoader(TensorDataset(X[1400:], y[1400:]), batch_size=64)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, train_dataloader, eval_dataloader = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader
    )
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        model.train()
        for inputs, targets in train_dataloader:
            loss = criterion(model(inputs), targets)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        correct, seen = 0, 0
        for inputs, targets in eval_dataloader:
            with torch.no_grad():
                predictions = model(inputs).argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, targets))
            correct += (predictions == references).sum().item()
            seen += len(references)
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {correct / seen:.3f}")


if __name__ == "__main__":
    main()
