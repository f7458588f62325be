"""MC dropout on breast cancer: average many stochastic passes and abstain where they disagree."""
import argparse
import torch
from torch import nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


def split(seed):
    x, y = load_breast_cancer(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=.4, stratify=y, random_state=seed)
    s = StandardScaler().fit(xa)
    f = lambda a: torch.tensor(s.transform(a), dtype=torch.float32)
    return f(xa), torch.tensor(ya), f(xb), torch.tensor(yb)


def net(p):
    return nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(p),
                         nn.Linear(32, 2))


@torch.no_grad()
def mc_predict(model, x, passes):
    """Dropout stays active on purpose: each pass is one draw from the approximate posterior."""
    model.train()
    probs = torch.stack([model(x).softmax(-1) for _ in range(passes)])
    mean = probs.mean(0)
    ent = lambda q: -(q * q.clamp_min(1e-9).log()).sum(-1)
    return mean, ent(mean) - ent(probs).mean(0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dropout", type=float, default=.3)
    ap.add_argument("--passes", type=int, default=100)
    ap.add_argument("--steps", type=int, default=500)
    ap.add_argument("--seed", type=int, default=0)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    xa, ya, xb, yb = split(a.seed)
    model = net(a.dropout)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=.05)
    for step in range(a.steps):
        i = torch.randint(len(xa), (64,))
        loss = nn.functional.cross_entropy(model(xa[i]), ya[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    mean, info = mc_predict(model, xb, a.passes)
    right = mean.argmax(-1) == yb
    nll = nn.functional.nll_loss(mean.log(), yb)
    print(f"MC accuracy {right.float().mean():.3f} NLL {nll:.3f}")
    sure = info <= info.quantile(.8)
    print(f"accuracy on the 80% it is surest of {right[sure].float().mean():.3f}, on the rest {right[~sure].float().mean():.3f}")
    model.eval()
    with torch.no_grad():
        det = (model(xb).argmax(-1) == yb).float().mean()
    print(f"single deterministic pass {det:.3f}")


if __name__ == "__main__":
    main()
