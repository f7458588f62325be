"""Frozen random Fourier features with a trained linear read-out, bfloat16 autocast on CPU, label noise handled by smoothing."""
import torch
from torch import nn
from sklearn.datasets import load_digits

SEED = 0


class RandomFeatures(nn.Module):
    def __init__(self, d, n, gamma):
        super().__init__()
        self.register_buffer("w", torch.randn(d, n) * (2 * gamma) ** .5)
        self.register_buffer("b", torch.rand(n) * 6.2832)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return (2 / self.w.shape[1]) ** .5 * torch.cos(x.float() @ self.w + self.b)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = RandomFeatures(64, 1024, .25)
        self.read = nn.Linear(1024, 10)
        nn.init.zeros_(self.read.weight)

    def forward(self, x):
        return self.read(self.features(x) * 8)


def main():
    torch.manual_seed(SEED)
    d = load_digits()
    x = torch.tensor(d.data, dtype=torch.float32) / 16
    y = torch.tensor(d.target)
    p = torch.randperm(len(x))
    tr, te = p[:1200], p[1200:]
    y_noisy = y.clone()
    flip = tr[torch.rand(len(tr)) < .1]
    y_noisy[flip] = torch.randint(0, 10, (len(flip),))
    model = Classifier()
    params = [q for q in model.parameters() if q.requires_grad]
    print(f"trainable {sum(q.numel() for q in params)}, fixed {model.features.w.numel() + model.features.b.numel()}")
    opt = torch.optim.AdamW(params, lr=1e-2, weight_decay=.1)
    lossf = nn.CrossEntropyLoss(label_smoothing=.1)
    best, best_state = 9e9, None
    val, fit = tr[:200], tr[200:]
    for ep in range(25):
        model.train()
        for idx in fit[torch.randperm(len(fit))].split(50):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = lossf(model(x[idx]).float(), y_noisy[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            v = nn.functional.cross_entropy(model(x[val]), y_noisy[val]).item()
        if v < best:
            best, best_state, at = v, {k: t.clone() for k, t in model.state_dict().items()}, ep
        if ep % 5 == 4:
            print(f"epoch {ep + 1} loss {loss.item():.3f} validation {v:.3f}")
    model.load_state_dict(best_state)
    with torch.no_grad():
        acc = (model(x[te]).argmax(1) == y[te]).float().mean()
    print(f"epoch {at + 1} kept; accuracy on clean test labels {acc:.3f}")


main()
