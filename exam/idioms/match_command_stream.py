import itertools

import torch
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(0)
wine = load_wine()
X = torch.tensor(wine.data, dtype=torch.float32)
y = torch.tensor(wine.target)
perm = torch.randperm(len(X))
tr, va = perm[:130], perm[130:]

model = nn.Sequential(
    nn.BatchNorm1d(13), nn.Linear(13, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def commands(rounds):
    yield ("evaluate",)
    for r in range(rounds):
        shuffled = tr[torch.randperm(len(tr))]
        for chunk in shuffled.split(26):
            yield ("train", chunk)
        if r % 5 == 4:
            yield ("evaluate",)
            yield ("note", f"round {r}")
    yield ("stop",)


def evaluate():
    model.eval()
    with torch.no_grad():
        logits = model(X[va])
        loss = nn.functional.cross_entropy(logits, y[va]).item()
        acc = (logits.argmax(1) == y[va]).float().mean().item()
    model.train()
    return loss, acc


history = []
step = itertools.count()
for command in commands(30):
    match command:
        case ("train", idx):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(X[idx]), y[idx])
            loss.backward()
            optimizer.step()
            history.append(loss.item())
            next(step)
        case ("evaluate",):
            vloss, vacc = evaluate()
            print(f"val loss {vloss:.4f} acc {vacc:.3f}")
        case ("note", text):
            print(text, f"mean train loss {sum(history[-25:]) / 25:.4f}")
        case ("stop",):
            break
        case _:
            raise ValueError(command)
print(f"FINAL loss {vloss:.4f} acc {vacc:.3f} steps {next(step)}")
