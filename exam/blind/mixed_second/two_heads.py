"""Shared trunk, two targets on wine data: cultivar (3-way) and alcohol content (regression)."""
import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

SEED = 0


class TwoHeads(nn.Module):
    def __init__(self, d_in, d=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d_in, d), nn.Tanh(), nn.Dropout(.1))
        self.cls = nn.Linear(d, 3)
        self.reg = nn.Linear(d, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.cls(h), self.reg(h).squeeze(-1)


def data():
    w = load_wine()
    alcohol, x = w.data[:, 0], w.data[:, 1:]
    a, b = train_test_split(range(len(x)), test_size=.35, stratify=w.target, random_state=SEED)
    sx = StandardScaler().fit(x[a])
    m, s = alcohol[a].mean(), alcohol[a].std()

    def ds(i):
        return TensorDataset(torch.tensor(sx.transform(x[i]), dtype=torch.float32), torch.tensor(w.target[i]),
                             torch.tensor((alcohol[i] - m) / s, dtype=torch.float32))
    return ds(a), ds(b), x.shape[1]


def test(acc, model, loader):
    model.eval()
    C, E = [], []
    with torch.no_grad():
        for x, y, t in loader:
            logits, r = model(x)
            C.append(acc.gather_for_metrics((logits.argmax(1) == y).float()))
            E.append(acc.gather_for_metrics((r - t) ** 2))
    model.train()
    return torch.cat(C).mean().item(), 1 - torch.cat(E).mean().item()


def main(epochs=60):
    set_seed(SEED)
    acc = Accelerator(cpu=True)
    tr, te, d = data()
    model = TwoHeads(d)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
    tl, vl = DataLoader(tr, 16, shuffle=True), DataLoader(te, 64)
    model, opt, tl, vl = acc.prepare(model, opt, tl, vl)
    for ep in range(epochs):
        for x, y, t in tl:
            logits, r = model(x)
            loss_c = nn.functional.cross_entropy(logits, y)
            loss_r = nn.functional.mse_loss(r, t)
            opt.zero_grad()
            acc.backward(loss_c)
            acc.backward(0.5 * loss_r)
            opt.step()
        if ep % 10 == 9:
            c, r2 = test(acc, model, vl)
            acc.print(f"epoch {ep + 1} cls loss {loss_c.item():.3f} reg loss {loss_r.item():.3f} "
                      f"test acc {c:.3f} R2 {r2:.3f}")
    c, r2 = test(acc, model, vl)
    acc.print(f"final: cultivar accuracy {c:.3f}, alcohol R2 {r2:.3f}")


if __name__ == "__main__":
    main()
