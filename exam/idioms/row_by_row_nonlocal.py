import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def main():
    torch.manual_seed(8)
    ds = load_digits(n_class=5)
    rows = torch.tensor(ds.data, dtype=torch.float32).div(16)
    labels = torch.tensor(ds.target)
    by_class = labels.argsort(stable=True)  # the archive is stored class by class
    rows, labels = rows[by_class], labels[by_class]
    hold = torch.zeros(len(rows), dtype=torch.bool)
    hold[::3] = True
    stream_x, stream_y = rows[~hold], labels[~hold]

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    seen = 0
    mistakes = 0
    smooth = None

    def learn(x, y):
        nonlocal seen, mistakes, smooth
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
        mistakes += int(logits.argmax() != y)
        value = loss.item()
        smooth = value if smooth is None else 0.99 * smooth + 0.01 * value

    def report():
        with torch.no_grad():
            out = model(rows[hold])
            acc = (out.argmax(1) == labels[hold]).float().mean().item()
            vl = F.cross_entropy(out, labels[hold]).item()
        print(f"seen {seen} mistakes {mistakes} smooth loss {smooth:.4f} held loss {vl:.4f} acc {acc:.3f}")
        return acc, vl

    for sweep in range(2):
        order = torch.randperm(len(stream_x))
        for i in order:
            learn(stream_x[i], stream_y[i])
        acc, vl = report()
    print(f"FINAL held loss {vl:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
