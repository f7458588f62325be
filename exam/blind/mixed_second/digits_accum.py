"""Small-memory training with gradient accumulation (Accelerate, SGD)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 0
CONFIG = dict(lr=0.2, momentum=0.0, micro_batch=8, accum=16, epochs=14, width=128, clip=5.0)


def loaders(bs):
    x, y = load_digits(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x / 16, y, test_size=.25, stratify=y, random_state=SEED)
    ds = [TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(b)) for a, b in ((xa, ya), (xb, yb))]
    return DataLoader(ds[0], bs, shuffle=True, drop_last=True), DataLoader(ds[1], 256)


def evaluate(acc, model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        with torch.no_grad():
            p = model(x).argmax(-1)
        p, y = acc.gather_for_metrics((p, y))
        right += (p == y).sum().item()
        total += len(y)
    model.train()
    return right / total


def main():
    c = CONFIG
    set_seed(SEED)
    acc = Accelerator(cpu=True, gradient_accumulation_steps=c["accum"])
    train, test = loaders(c["micro_batch"])
    model = nn.Sequential(nn.Linear(64, c["width"]), nn.ReLU(), nn.Linear(c["width"], c["width"]), nn.ReLU(),
                          nn.Linear(c["width"], 10))
    opt = torch.optim.SGD(model.parameters(), lr=c["lr"], momentum=c["momentum"])
    model, opt, train, test = acc.prepare(model, opt, train, test)
    lossf = nn.CrossEntropyLoss()
    updates = 0
    for epoch in range(c["epochs"]):
        seen = 0.0
        for x, y in train:
            with acc.accumulate(model):
                loss = lossf(model(x), y) / c["accum"]
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), c["clip"])
                    updates += 1
                opt.step()
                opt.zero_grad()
            seen += loss.detach().item()
        acc.print(f"epoch {epoch + 1:2d} updates {updates} loss {seen / len(train):.4f} "
                  f"test acc {evaluate(acc, model, test):.3f}")
    acc.print(f"test accuracy {evaluate(acc, model, test):.3f}")


if __name__ == "__main__":
    main()
