# Discrete representation learning with Gumbel-softmax latents (code for the workshop paper).
# L categorical variables with K states each, straight-through samples late in training.
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

L_VARS, K_STATES, HID = 8, 8, 128
EPOCHS, BATCH = 50, 64
TAU_START, TAU_END, BETA = 1.0, 0.4, 0.3


class CategoricalVAE(nn.Module):
    def __init__(self, d_in=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(d_in, HID), nn.ReLU(), nn.Linear(HID, HID), nn.ReLU(), nn.Linear(HID, L_VARS * K_STATES))
        self.decoder = nn.Sequential(
            nn.Linear(L_VARS * K_STATES, HID), nn.ReLU(), nn.Linear(HID, HID), nn.ReLU(), nn.Linear(HID, d_in))

    def posterior(self, x):
        return self.encoder(x).view(-1, L_VARS, K_STATES)

    def forward(self, x, tau, hard):
        q_logits = self.posterior(x)
        z = F.gumbel_softmax(q_logits, tau=tau, hard=hard, dim=-1)
        return self.decoder(z.flatten(1)), q_logits


def kl_to_uniform(q_logits):
    log_q = F.log_softmax(q_logits, dim=-1)
    return (log_q.exp() * (log_q + math.log(K_STATES))).sum(dim=(1, 2)).mean()


def elbo_terms(x_logits, x, q_logits):
    rec = F.binary_cross_entropy_with_logits(x_logits, x, reduction="sum") / x.size(0)
    return rec, kl_to_uniform(q_logits)


def tau_at(step, total):
    frac = min(1.0, step / (0.8 * total))
    return TAU_START * (TAU_END / TAU_START) ** frac


def train(model, x_train):
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    n_batches = len(x_train) // BATCH
    total, step = EPOCHS * n_batches, 0
    for epoch in range(EPOCHS):
        perm = torch.randperm(len(x_train))
        rec_sum = kl_sum = 0.0
        kl_weight = BETA * min(1.0, epoch / 20)
        for b in range(n_batches):
            x = x_train[perm[b * BATCH:(b + 1) * BATCH]]
            x_logits, q_logits = model(x, tau_at(step, total), hard=epoch >= 35)
            rec, kl = elbo_terms(x_logits, x, q_logits)
            loss = rec + kl_weight * kl
            opt.zero_grad()
            loss.backward()
            opt.step()
            rec_sum += rec.item()
            kl_sum += kl.item()
            step += 1
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d}  rec {rec_sum / n_batches:.3f}  kl {kl_sum / n_batches:.3f}")


@torch.no_grad()
def report(model, x_tr, y_tr, x_te, y_te):
    model.eval()
    code_tr = F.one_hot(model.posterior(x_tr).argmax(-1), K_STATES).float().flatten(1)
    code_te = F.one_hot(model.posterior(x_te).argmax(-1), K_STATES).float().flatten(1)
    recon = torch.sigmoid(model.decoder(code_te))
    r2 = 1 - ((recon - x_te) ** 2).mean() / ((x_te - x_tr.mean(0)) ** 2).mean()
    probe = LogisticRegression(max_iter=500).fit(code_tr.numpy(), y_tr)
    usage = (code_tr.mean(0) > 0.01).float().mean()
    print(f"states in use {usage:.2f}")
    print(f"reconstruction R2 {r2:.3f}")
    print(f"probe accuracy on codes {probe.score(code_te.numpy(), y_te):.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    digits = load_digits()
    order = np.random.permutation(len(digits.target))
    X = torch.tensor(digits.data[order] / 16.0, dtype=torch.float32)
    y = digits.target[order]
    x_tr, x_te, y_tr, y_te = X[:1400], X[1400:], y[:1400], y[1400:]
    net = CategoricalVAE()
    train(net, x_tr)
    report(net, x_tr, y_tr, x_te, y_te)
