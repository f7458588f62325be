# Iris, 5 stratified folds, full-batch L-BFGS: a few hundred parameters, no minibatches needed.
import numpy as np
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

SEED = 0
x_all, y_all = load_iris(return_X_y=True)
folds = StratifiedKFold(5, shuffle=True, random_state=SEED)


def fit_fold(tr, te, seed, l2=1e-2):
    torch.manual_seed(seed)
    mu, sd = x_all[tr].mean(0), x_all[tr].std(0)
    t = lambda i: torch.tensor((x_all[i] - mu) / sd, dtype=torch.float64)
    x, y = t(tr), torch.tensor(y_all[tr])
    W1 = (torch.randn(4, 16, dtype=torch.float64) / 2).requires_grad_()
    b1 = torch.zeros(16, dtype=torch.float64, requires_grad=True)
    W2 = (torch.randn(16, 3, dtype=torch.float64) / 4).requires_grad_()
    b2 = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    params = [W1, b1, W2, b2]

    def forward(z):
        return torch.tanh(z @ W1 + b1) @ W2 + b2

    opt = torch.optim.LBFGS(params, lr=1.0, max_iter=60, history_size=20, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(forward(x), y) + l2 * (W1.square().sum() + W2.square().sum()) / 2
        loss.backward()
        return loss

    first = closure().item()
    for _ in range(3):
        last = opt.step(closure).item()
    with torch.no_grad():
        pred = forward(t(te)).argmax(1).numpy()
    return first, closure().item(), pred


oof = np.full(len(y_all), -1)
for k, (tr, te) in enumerate(folds.split(x_all, y_all)):
    a, b, oof[te] = fit_fold(tr, te, SEED + k)
    print(f"fold {k}: loss {a:.3f} -> {b:.3f}, accuracy {(oof[te] == y_all[te]).mean():.3f}")
print(f"out-of-fold accuracy {(oof == y_all).mean():.3f}")
cm = np.zeros((3, 3), int)
np.add.at(cm, (y_all, oof), 1)
print(cm)
